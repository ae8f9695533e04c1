package main

import (
	"cmp"
	"crypto/tls"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/internal/wire"
)

// A configJSON is a contract; see docs/cli.md.
type configJSON struct {
	URL              string        `json:"url"`
	Mode             string        `json:"mode"`
	Addresses        []string      `json:"addresses"`
	MasterName       string        `json:"master_name"`
	Database         int           `json:"database"`
	User             string        `json:"user"`
	Password         string        `json:"password"`
	SentinelUser     string        `json:"sentinel_user"`
	SentinelPassword string        `json:"sentinel_password"`
	ClientName       string        `json:"client_name"`
	Prefix           string        `json:"prefix"`
	Protocol         int           `json:"protocol"`
	TLS              *tlsJSON      `json:"tls"`
	DialTimeout      int64         `json:"dial_timeout_ms"`
	Timeout          int64         `json:"timeout_ms"`
	Watchdog         int64         `json:"watchdog_ms"`
	FairLockWait     int64         `json:"fair_lock_wait_ms"`
	Codec            string        `json:"codec"`
	PubSub           string        `json:"pubsub"`
	Acks             string        `json:"acks"`
	AckTimeout       int64         `json:"ack_timeout_ms"`
	Warnings         []warningJSON `json:"warnings"`
}

type tlsJSON struct {
	CACert     string `json:"cacert"`
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	SNI        string `json:"sni"`
	MinVersion string `json:"min_version"`
	Verify     string `json:"verify"`
}

type warningJSON struct {
	Severity string `json:"severity"`
	Line     int    `json:"line"`
	Key      string `json:"key"`
	Text     string `json:"text"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check where the server is, and how it is reached",
		Args:  known,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configCheckCommand())
	return cmd
}

func (a *app) configCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Print what a configuration file means",
		Long: `Print what redlatch understands of FILE, a configuration file of Redisson in YAML or
JSON, and warn of each key that does something else here, or may be a mistake. One
line names the keys that have no effect, and need none. Without FILE, read the file
of --config, or else the URL that the other commands would use. Passwords are not
shown, and nothing is connected. Variables such as ${REDIS_PASSWORD:-none} are those
of the environment.

The exit code is 0, also with warnings, or 78 if the file cannot be used.`,
		Example: `  redlatch config check redisson.yaml
  redlatch config check redisson.yaml -o json | jq '.warnings | length'`,
		Args: cobra.MaximumNArgs(1),
	}
	asJSON := outputFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			if a.server.config != "" {
				return usage("the file is given twice: as an argument, and with --config")
			}
			a.server.config = args[0]
		}
		p, err := a.plan(redlatch.Config{})
		if err != nil {
			for _, line := range connect.WarningLines(p.Warnings) {
				a.ui.note("warning: %s", line)
			}
			return err
		}
		c := configOf(p)
		c.Prefix = a.server.prefix
		if asJSON() {
			return written(a.ui.json(c))
		}
		rows := c.rows()
		for _, line := range connect.WarningLines(p.Warnings) {
			rows = append(rows, []string{"warning", line})
		}
		return written(a.ui.table(rows))
	}
	return cmd
}

func configOf(p connect.Plan) *configJSON {
	c := &configJSON{
		URL: p.String(), Mode: p.Mode.String(), Addresses: p.Addresses, MasterName: p.MasterName, Database: p.Database,
		User: p.User, Password: p.Password.String(), SentinelUser: p.SentinelUser, SentinelPassword: p.SentinelPassword.String(),
		ClientName: p.ClientName, Protocol: 3,
		DialTimeout:  p.Dial.Milliseconds(),
		Timeout:      p.Script.Milliseconds(),
		Watchdog:     p.Config.WatchdogTimeout.Milliseconds(),
		FairLockWait: cmp.Or(p.Config.Redisson.FairLockWaitTimeout, wire.DefaultFairWait).Milliseconds(),
		Codec:        p.Config.Redisson.Codec,
		PubSub:       p.Config.Redisson.PubSub.String(),
		Acks:         p.Config.Acks.String(),
		AckTimeout:   cmp.Or(p.Config.AckTimeout, time.Second).Milliseconds(),
		Warnings:     []warningJSON{},
	}
	if p.RESP2 {
		c.Protocol = 2
	}
	if t := p.TLS; t != nil {
		c.TLS = &tlsJSON{CACert: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, SNI: t.ServerName, MinVersion: "1.2", Verify: t.Verify.String()}
		if t.MinVersion == tls.VersionTLS13 {
			c.TLS.MinVersion = "1.3"
		}
	}
	for _, w := range p.Warnings {
		c.Warnings = append(c.Warnings, warningJSON{w.Severity.String(), w.Line, w.Key, w.Text})
	}
	return c
}

// milliseconds shows a setting, in ms, exactly.
func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }

// rows are what config check prints: what differs from the default, and what
// everybody wants to know.
func (c *configJSON) rows() [][]string {
	rows := [][]string{{"url", c.URL}, {"mode", c.Mode}, {"addresses", strings.Join(c.Addresses, " ")}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("master name", c.MasterName)
	add("database", strconv.Itoa(c.Database))
	add("user", c.User)
	add("password", c.Password)
	add("sentinel user", c.SentinelUser)
	add("sentinel password", c.SentinelPassword)
	add("client name", c.ClientName)
	add("prefix", c.Prefix)
	add("protocol", strconv.Itoa(c.Protocol))
	if t := c.TLS; t == nil {
		add("tls", "no")
	} else {
		add("tls", t.MinVersion+" or newer")
		add("verified", t.Verify)
		add("cacert", t.CACert)
		add("cert", t.Cert)
		add("key", t.Key)
		add("sni", t.SNI)
	}
	add("dial timeout", milliseconds(c.DialTimeout))
	add("timeout", milliseconds(c.Timeout))
	add("watchdog", milliseconds(c.Watchdog))
	add("fair lock wait", milliseconds(c.FairLockWait))
	if codec := c.Codec; wire.PlainCodec(codec) {
		add("codec", codec)
	} else {
		add("codec", codec+" (run --group is refused with it)")
	}
	if c.Mode == connect.Cluster.String() {
		add("pubsub", c.PubSub)
	}
	if c.Mode != connect.Single.String() || c.Acks == redlatch.AckAny.String() {
		add("acks", c.Acks)
		add("ack timeout", milliseconds(c.AckTimeout))
	}
	return rows
}
