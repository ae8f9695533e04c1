// Package otel tells what becomes of acquisitions and holds as OpenTelemetry's SDK
// has it: spans and metrics.
package otel
