// Package semaphore tells of semaphores, those whose permits are counted and those
// whose permits have ids and leases.
package semaphore
