package connect

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A query is what the query of a URL says beside the settings.
type query struct {
	db     bool // there is a db
	addrs  []string
	master string
	value  string // of the key that is being read
}

// A key is one of those that a query may have.
type key struct {
	set    func(*parsed, *query) error
	secure bool // for TLS only
}

// The errors say what is wrong with the value of a key, which stands before it.
var (
	errDatabase = errors.New("is not a database number")
	errDuration = errors.New("is not a positive time, such as 500ms or 3s")
	errEmpty    = errors.New("is empty")
	errTwice    = errors.New("is given twice")
)

var keys = map[string]key{
	"addr": {set: func(_ *parsed, q *query) error {
		q.addrs = append(q.addrs, q.value)
		return notEmpty(q.value)
	}},
	"client_cache": {set: off},
	"client_name":  {set: text(func(p *parsed) *string { return &p.ClientName })},
	"db": {set: func(p *parsed, q *query) (err error) {
		q.db = true
		if p.Database, err = database(q.value); err != nil {
			return errDatabase
		}
		return nil
	}},
	"dial_timeout": {set: duration(func(p *parsed) *time.Duration { return &p.DialTimeout })},
	"master_name":  {set: master},
	"master_set":   {set: master},
	"max_retries":  {set: off},
	"password": {set: func(p *parsed, q *query) error {
		if p.Password != "" && p.Password != Secret(q.value) {
			return errTwice
		}
		p.Password = Secret(q.value)
		return nil
	}},
	"protocol": {set: func(p *parsed, q *query) error {
		if q.value != "2" && q.value != "3" {
			return errors.New("is neither 2 nor 3")
		}
		p.RESP2 = q.value == "2"
		return nil
	}},
	"read_timeout": {set: duration(func(p *parsed) *time.Duration { return &p.Timeout })},
	"sentinel_password": {set: func(p *parsed, q *query) error {
		p.SentinelPassword = Secret(q.value)
		return nil
	}},
	"sentinel_username": {set: text(func(p *parsed) *string { return &p.SentinelUser })},
	"write_timeout":     {set: duration(func(p *parsed) *time.Duration { return &p.Timeout })},

	"cacert": {secure: true, set: text(func(p *parsed) *string { return &p.TLS.CAFile })},
	"cert":   {secure: true, set: text(func(p *parsed) *string { return &p.TLS.CertFile })},
	"key":    {secure: true, set: text(func(p *parsed) *string { return &p.TLS.KeyFile })},
	"sni":    {secure: true, set: text(func(p *parsed) *string { return &p.TLS.ServerName })},
	"skip_verify": {secure: true, set: func(p *parsed, q *query) error {
		skip, err := strconv.ParseBool(q.value)
		if err != nil {
			return errors.New("is neither true nor false")
		}
		if skip {
			p.TLS.Verify = VerifyNone
		}
		return nil
	}},
	"tls_min": {secure: true, set: func(p *parsed, q *query) error {
		switch q.value {
		case "1.2":
			p.TLS.MinVersion = tls.VersionTLS12
		case "1.3":
			p.TLS.MinVersion = tls.VersionTLS13
		default:
			return errors.New("is neither 1.2 nor 1.3")
		}
		return nil
	}},
}

func notEmpty(s string) error {
	if s == "" {
		return errEmpty
	}
	return nil
}

func text(field func(*parsed) *string) func(*parsed, *query) error {
	return func(p *parsed, q *query) error {
		*field(p) = q.value
		return notEmpty(q.value)
	}
}

// duration reads a time as Go writes it, or a number of seconds. Where two keys
// set one field, the longer time counts.
func duration(field func(*parsed) *time.Duration) func(*parsed, *query) error {
	return func(p *parsed, q *query) error {
		d, err := time.ParseDuration(q.value)
		if err != nil {
			seconds, err := strconv.ParseUint(q.value, 10, 31)
			if err != nil {
				return errDuration
			}
			d = time.Duration(seconds) * time.Second
		}
		if d <= 0 {
			return errDuration
		}
		*field(p) = max(*field(p), d)
		return nil
	}
}

func master(_ *parsed, q *query) error {
	if q.master != "" && q.master != q.value {
		return errors.New("and the other key for the master's name differ")
	}
	q.master = q.value
	return notEmpty(q.value)
}

// off is for what redlatch never does.
func off(_ *parsed, q *query) error {
	if q.value != "0" {
		return errors.New("can only be 0")
	}
	return nil
}

// optionName is what somebody may have taken for a key.
var optionName = regexp.MustCompile(`^[A-Za-z_]{1,30}$`)

// query reads the query of the URL into the settings, and returns the rest.
func (p *parsed) query(u *url.URL) (*query, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errMalformed
	}
	q := &query{}
	for _, name := range slices.Sorted(maps.Keys(values)) { // the same URL gets the same error every time
		k, known := keys[name]
		if !known {
			if !optionName.MatchString(name) || values.Get(name) == "" || values.Has("password") || values.Has("sentinel_password") {
				name = "..." // it may be a piece of a password
			}
			return nil, fmt.Errorf("connect: unknown key %q in the URL's query; there are %s",
				name, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		if k.secure && p.TLS == nil {
			return nil, fmt.Errorf("connect: %s is for TLS, which URLs of rediss and valkeys ask for", name)
		}
		if len(values[name]) > 1 && name != "addr" {
			return nil, fmt.Errorf("connect: %s in the URL %w", name, errTwice)
		}
		for _, q.value = range values[name] {
			if err := k.set(p, q); err != nil {
				return nil, fmt.Errorf("connect: %s in the URL %w", name, err)
			}
		}
	}
	return q, nil
}
