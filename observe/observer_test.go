package observe

import (
	"reflect"
	"slices"
	"testing"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/hooks"
)

// What the client tells has a function of the same name, which is called once.
func TestEachEventIsToldToItsFunction(t *testing.T) {
	var told []string
	var h Hooks
	functions := reflect.ValueOf(&h).Elem()
	for i := range functions.NumField() {
		f, name := functions.Field(i), functions.Type().Field(i).Name
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) (none []reflect.Value) {
			told = append(told, name)
			for j := range f.Type().NumOut() {
				none = append(none, reflect.Zero(f.Type().Out(j)))
			}
			return none
		}))
	}
	events := reflect.TypeFor[hooks.Observer]()
	if events.NumMethod() != functions.NumField() {
		t.Errorf("%d events have %d functions", events.NumMethod(), functions.NumField())
	}
	for i := range events.NumMethod() {
		event := events.Method(i)
		args := make([]reflect.Value, event.Type.NumIn())
		for j := range args {
			if args[j] = reflect.Zero(event.Type.In(j)); event.Type.In(j).Kind() == reflect.Pointer {
				args[j] = reflect.New(event.Type.In(j).Elem())
			}
		}
		reflect.ValueOf(&observer{}).MethodByName(event.Name).Call(args) // without a function
		told = nil
		reflect.ValueOf(&observer{h: h}).MethodByName(event.Name).Call(args)
		if !slices.Equal(told, []string{event.Name}) {
			t.Errorf("%s was told to %q", event.Name, told)
		}
	}
}

// The client says how acquisitions and holds ended in words of its own, which
// become the user's.
func TestOutcomesAndReasonsAreThoseOfTheClient(t *testing.T) {
	for outcome, word := range map[Outcome]hooks.Outcome{
		OutcomeAcquired: hooks.Acquired, OutcomeHandedOff: hooks.HandedOff, OutcomeReentered: hooks.Reentered, OutcomeBusy: hooks.Busy,
		OutcomeTimedOut: hooks.TimedOut, OutcomeCancelled: hooks.Cancelled, OutcomeBroken: hooks.Broken,
		OutcomeUnavailable: hooks.Unavailable, OutcomeRefused: hooks.Refused, OutcomeClosed: hooks.Closed,
	} {
		if string(outcome) != string(word) {
			t.Errorf("%q is %q of the client", outcome, word)
		}
	}
	for reason, word := range map[EndReason]holdctx.End{
		EndReleased: holdctx.EndReleased, EndDetached: holdctx.EndDetached, EndLost: holdctx.EndLost,
		EndDropped: holdctx.EndDropped, EndClosed: holdctx.EndClosed,
	} {
		if string(reason) != string(word) {
			t.Errorf("%q is %q of the client", reason, word)
		}
	}
}
