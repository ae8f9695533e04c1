// Package client tells what goes for every type of a client: bad input, errors, Info,
// lying servers, names that twin, the keys and messages of each type.
package client
