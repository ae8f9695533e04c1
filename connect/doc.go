// Package connect reads where a server is and how to talk to it: of a URL, as the redlatch
// command does, or of the configuration file of a Java service. One of the packages
// openrueidis, opengoredis and openvalkeygo opens that with the client library of its name, and a program links the
// one that it imports:
//
//	driver, err := openrueidis.Open(os.Getenv("REDIS_URL"))
//	if err != nil { ... }
//	defer driver.Close()
//	client, err := redlatch.New(driver, redlatch.Config{})
//
// [Parse] has the forms of URL: one server, what sentinels watch, a cluster; in
// the clear, with TLS, through a Unix socket. Its [Settings] can be looked at
// and changed before they are opened. [ParseRedisson] makes such Settings of the
// configuration file of a Java service that takes the same locks.
//
// Credentials that change are asked of a [CredentialsFunc], for each connection
// anew. A connection that has logged in stays so when the password changes; one
// that is cut, by CLIENT KILL or because its user is deleted, is made again with
// what the function says then, and holds and waiters go on.
//
// No error of this package contains a user name, a password, or a piece of a
// URL that could be one.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch and has
// its version numbers: require the same version of both.
package connect
