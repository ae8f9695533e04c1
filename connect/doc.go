// Package connect reads where a server is and how to talk to it: from a URL, as the
// redlatch command does, or from the configuration file of a Java service. The packages
// openrueidis, opengoredis and openvalkeygo then open the connections, each with the
// client library of its name. A program links only the library whose package it imports:
//
//	driver, err := openrueidis.Open(os.Getenv("REDIS_URL"))
//	if err != nil { ... }
//	defer driver.Close()
//	client, err := redlatch.New(driver, redlatch.Config{})
//
// [Parse] lists the forms of URL: for one server, for what sentinels watch, and
// for a cluster, without TLS, with TLS, or through a Unix socket. A program can
// look at the [Settings] that it returns, and change them, before it opens them.
// [ParseRedisson] makes such Settings from the configuration file of a Java
// service that takes the same locks.
//
// For credentials that change there is a [CredentialsFunc], which is called anew
// for each connection. A connection that has logged in stays logged in when the
// password changes. A connection that is cut, by CLIENT KILL or because its user
// is deleted, is made again with what the function returns then, and holds and
// waiters go on.
//
// No error of this package contains a user name, a password, or a piece of a
// URL that could be one.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch, and
// has the same version numbers. Require the same version of both.
package connect
