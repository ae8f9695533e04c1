// Package connect reads where a server is and how to talk to it, from a URL. It is
// what the Open functions of redlatchgoredis, redlatchrueidis and redlatchvalkey
// have in common, and needs no client library:
//
//	client, err := redlatchrueidis.Open(os.Getenv("REDIS_URL"), redlatch.Config{})
//	if err != nil { ... }
//	defer client.Close()
//
// [Parse] lists the forms of URL: for one server, for what sentinels watch, and
// for a cluster, without TLS, with TLS, or through a Unix socket. A program can
// look at the [Settings] that it returns, and change them, before it opens them
// with OpenSettings of one of these packages. Package redissonyaml makes such
// Settings from the configuration file of a Java service that takes the same
// locks.
//
// For credentials that change there is a [CredentialsFunc], which is called anew
// for each connection. A connection that has logged in stays logged in when the
// password changes. A connection that is cut, by CLIENT KILL or because its user
// is deleted, is made again with what the function returns then, and holds and
// waiters go on.
//
// No error of this package contains a user name, a password, or a piece of a
// URL that could be one.
package connect
