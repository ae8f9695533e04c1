// Package valkeygo tests the adapter for valkey-go, whose own module requires
// nothing for its tests.
package valkeygo
