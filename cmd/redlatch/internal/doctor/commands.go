package doctor

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/acl"
)

// A command is one that redlatch's scripts use, with arguments that do no harm.
type command struct{ args, by string }

// name is what ACLs call it, but for subcommands.
func (c command) name() string {
	name, _, _ := strings.Cut(c.args, " ")
	return name
}

//go:embed try.lua
var try string

// scripts sees whether the server runs scripts.
func scripts(v *visit) []Finding {
	const (
		check       = "scripts"
		consequence = "nothing can be locked: every request of redlatch and Redisson is a script"
		remedy      = "give the user +eval and +evalsha; a proxy or a managed server must allow scripts"
	)
	const source = "return 1" // the next is its SHA-1
	const sum = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	for _, request := range [][]string{{"EVAL", source, "0"}, {"EVALSHA", sum, "0"}} {
		if _, why := v.ask(request...); why != nil {
			return found(check, Problem, fmt.Sprintf("%s is refused (%s)", request[0], why.Code), consequence, remedy)
		}
	}
	return fine(check, "EVAL and EVALSHA work")
}

// remedyRights is for whoever may not do enough.
const remedyRights = "ACL SETUSER with the rights that redlatch acl prints"

// commands tries what redlatch's scripts do, as scripts do it.
func commands(v *visit) []Finding {
	const check = "commands"
	key, ok := v.name()
	if !ok {
		return found(check, Warning, "CLUSTER SLOTS and CLUSTER MYID do not show which slots this node has",
			"go-redis finds no node without CLUSTER SLOTS; commands could not be tried", "give the user +cluster|slots and +cluster|myid")
	}
	wanted := wantedAt(v.sharded())
	request := []string{"EVAL", try, "1", key}
	for _, c := range wanted {
		words := strings.Fields(c.args)
		request = append(request, strconv.Itoa(len(words)))
		request = append(request, words[0])
		for _, word := range words[1:] {
			request = append(request, strings.ReplaceAll(word, "K", key))
		}
	}
	reply, why := v.ask(request...)
	if why != nil {
		if denied(why.Text) == onCommand {
			return nil // EVAL, of which scripts has told
		}
		return untried(key, why.Text)
	}
	all := judgeCommands(key, wanted, list(reply))
	if len(all) == 1 && all[0].Severity == Note {
		return all
	}
	return append(all, v.keysOf(key)...)
}

// classic is who needs classic Pub/Sub for locks where the sharded one is used.
const classic = "clients whose Config.Redisson.PubSub is classic"

// wantedAt returns all that is tried; K stands for the key of the visit.
func wantedAt(sharded bool) (all []command) {
	for _, c := range acl.InScripts {
		switch {
		case c.Sharded() && !sharded:
		case !strings.Contains(c.Args, " C"):
			all = append(all, command{c.Args, c.By})
		default:
			for _, p := range acl.Channels {
				channel := p.Of("K")
				if c.Sharded() && !strings.Contains(channel, "K") {
					continue // of no slot, so always classic
				}
				by := p.By
				if sharded && !c.Sharded() && strings.Contains(channel, "K") {
					by = classic
				}
				all = append(all, command{strings.Replace(c.Args, " C", " "+channel, 1), by})
			}
		}
	}
	return all
}

// keysOf tries whether the user may touch the keys beside an object's own.
func (v *visit) keysOf(name string) []Finding {
	var requests [][]string
	for _, p := range acl.SideKeys {
		requests = append(requests, []string{"EVAL", "return 1", "1", p.Of(name)})
	}
	var refused, by []string
	for i, a := range v.askAll(requests) {
		if a.Err != nil && denied(a.Err.Error()) == onKey {
			refused, by = append(refused, acl.SideKeys[i].Of("NAME")), append(by, acl.SideKeys[i].By)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return found("commands", Warning, "refused to the user: keys named "+words(refused), "these fail: "+words(by),
		remedyRights)
}

// untried is what is found when the commands could not be tried.
func untried(key, text string) []Finding {
	if denied(text) == onKey {
		return found("commands", Note, "the user may not touch the key "+key+", so commands were not tried",
			"it is not known whether the user may do what locks need", "use --prefix PREFIX, with the beginning of the keys that the user may touch")
	}
	return found("commands", Note, "commands could not be tried: "+text, "it is not known whether the user may do what locks need",
		"see the other findings, and the server's log")
}

// judgeCommands makes findings of what try.lua returns.
func judgeCommands(key string, wanted []command, failed []any) []Finding {
	const check, remedy = "commands", remedyRights
	var forLocks, forOthers, others, deafLocks, deafOthers, deaf []string
	for i := 0; i+1 < len(failed); i += 2 {
		nth, text := num(failed[i]), str(failed[i+1])
		if nth < 0 || int(nth) >= len(wanted) {
			return untried(key, text)
		}
		c := wanted[nth]
		switch r := denied(text); {
		case r == onChannel && c.by == acl.Locks:
			deafLocks = append(deafLocks, c.channel())
		case r == onChannel:
			deafOthers, deaf = append(deafOthers, c.channel()), append(deaf, c.by)
		case r == onCommand && c.by == acl.Locks:
			forLocks = append(forLocks, c.name())
		case r == onCommand && !slices.Contains(forLocks, c.name()):
			forOthers, others = append(forOthers, c.name()), append(others, c.by)
		case r == onCommand:
		case text == "ERR no such key": // what the user may do has found nothing
		default:
			return untried(key, text)
		}
	}
	var all []Finding
	if len(forLocks) > 0 {
		all = append(all, found(check, Problem, "refused to the user in scripts: "+words(forLocks),
			"no lock can be used: acquiring, renewing or releasing it fails", remedy)...)
	}
	if len(forOthers) > 0 {
		all = append(all, found(check, Warning, "refused to the user in scripts: "+words(forOthers), "these fail: "+words(others), remedy)...)
	}
	if len(deafLocks) > 0 {
		all = append(all, found(check, Problem, "refused to the user: channels named "+words(deafLocks),
			"no lock can be released, so locks stay until their leases end", remedy)...)
	}
	if len(deafOthers) > 0 {
		all = append(all, found(check, Warning, "refused to the user: channels named "+words(deafOthers), "these fail: "+words(deaf), remedy)...)
	}
	if len(all) == 0 {
		all = fine(check, fmt.Sprintf("the user may do all that scripts do; tried: %d", len(wanted)))
	}
	return all
}

// channel is the kind of channel that a command publishes to.
func (c command) channel() string {
	channel, _, _ := strings.Cut(strings.Fields(c.args)[1], "{")
	return strings.TrimSuffix(channel, "*") + "*"
}

// words joins lists of words to one.
func words(lists []string) string {
	all := strings.Split(strings.ReplaceAll(strings.Join(lists, ", "), " and ", ", "), ", ")
	return strings.Join(distinct(all), ", ")
}

func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// What a right is missing for.
type right uint8

const (
	another right = iota // the error is about something else
	onCommand
	onKey
	onChannel
)

// denied reads an error reply. Versions word it differently, and in scripts
// without the code NOPERM.
func denied(text string) right {
	text = strings.ToLower(text)
	switch {
	case strings.Contains(text, "unknown command"), strings.Contains(text, "unknown redis command"), strings.Contains(text, "unknown subcommand"):
		return onCommand
	case !strings.Contains(text, "permission") && !strings.Contains(text, "user executing the script"):
		return another
	case strings.Contains(text, "channel"):
		return onChannel
	case strings.Contains(text, "key"):
		return onKey
	}
	return onCommand
}
