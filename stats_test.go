package redlatch

import (
	"reflect"
	"testing"
)

// A field that Plus forgets is one that metrics of several clients lack.
func TestPlusHasEveryField(t *testing.T) {
	filled := func(n int64) (stats Stats) {
		all := reflect.ValueOf(&stats).Elem()
		for i := range all.NumField() {
			all.Field(i).Set(reflect.ValueOf(n).Convert(all.Field(i).Type()))
		}
		return stats
	}
	want := filled(5)
	want.RenewalLag = 3
	for _, got := range []Stats{filled(2).Plus(filled(3)), filled(3).Plus(filled(2))} {
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
