// Package lock tells of locks one at a time: waiting, holding, re-entering, renewing,
// losing, releasing. Most is of the plain lock; spin, fenced and striped locks have
// files of their own.
package lock
