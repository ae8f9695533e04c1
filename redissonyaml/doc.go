// Package redissonyaml reads the configuration file of a Java service,
// redisson.yaml, for a Go program that takes the same locks:
//
//	settings, err := redissonyaml.ReadFile("redisson.yaml")
//	if err != nil { ... }
//	client, err := redlatchrueidis.OpenSettings(settings, redlatch.Config{Logger: logger})
//	if err != nil { ... }
//	defer client.Close()
//
// The Logger gets the warnings, or connect.WarningLines makes lines of
// settings.Warnings. The packages redlatchgoredis and redlatchvalkey open such
// settings as well. docs/connect.md says what becomes of each key of the file.
//
// # Versions
//
// This package is a module of its own, because it needs a reader of YAML. It is
// released together with redlatch, and has the same version numbers. Require the
// same version of both.
package redissonyaml
