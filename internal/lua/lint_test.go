package lua

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/script"
)

// This is as much Lua as it takes to check scripts that are written plainly.

// luaToken is a comment, a string, a word or number, or anything else but space.
var luaToken = regexp.MustCompile(`--[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[A-Za-z0-9_]+|\.\.\.?|[=~<>]=|\n|[^ \t\r]`)

// luaTokens returns the tokens of a program, line ends included, without its
// comments.
func luaTokens(source string) []string {
	return slices.DeleteFunc(luaToken.FindAllString(source, -1), func(token string) bool {
		return strings.HasPrefix(token, "--")
	})
}

func isLuaName(token string) bool {
	return token != "" && strings.Trim(token[:1], "0123456789") != "" && !slices.Contains(luaWords, token) &&
		strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

var luaWords = []string{"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"}

// tokenAt returns a token, or "" beyond the end.
func tokenAt(tokens []string, i int) string {
	if i < 0 || i >= len(tokens) {
		return ""
	}
	return tokens[i]
}

// headerFaults compares what the header declares with what the body uses.
func headerFaults(s *script.Script) (faults []string) {
	tokens := luaTokens(s.Source())
	for table, declared := range map[string][]string{"KEYS": s.Header().Keys, "ARGV": s.Header().Args} {
		fixed, variadic := len(declared), false
		for i, name := range declared {
			if !strings.HasSuffix(name, "...") {
				continue
			}
			fixed, variadic = i, true
			if name == "..." {
				fixed = 0 // all of them repeat
			}
			if i != len(declared)-1 {
				faults = append(faults, fmt.Sprintf("%s: %s is not the last", table, name))
			}
		}
		used, computed := indexes(tokens, table)
		for _, n := range used {
			if n < 1 || (n > fixed && !variadic) {
				faults = append(faults, fmt.Sprintf("%s[%d] is not declared", table, n))
			}
		}
		for n := 1; n <= fixed; n++ {
			if !slices.Contains(used, n) {
				faults = append(faults, fmt.Sprintf("%s[%d], %s, is not used", table, n, declared[n-1]))
			}
		}
		switch {
		case table == "KEYS" && s.Header().Wants != nil && !variadic:
			faults = append(faults, "there is no place in KEYS for a key that is wanted")
		case computed && !variadic:
			faults = append(faults, table+" is used with an index that the header does not allow for")
		case variadic && !computed && len(used) <= fixed:
			faults = append(faults, table+": what repeats is not used")
		}
	}
	return faults
}

// indexes returns the constant indexes that a table is used with, and whether
// it is used in another way.
func indexes(tokens []string, table string) (constant []int, computed bool) {
	for i, token := range tokens {
		if token != table {
			continue
		}
		n, err := strconv.Atoi(tokenAt(tokens, i+2))
		if tokenAt(tokens, i+1) == "[" && err == nil && tokenAt(tokens, i+3) == "]" {
			constant = append(constant, n)
		} else {
			computed = true
		}
	}
	return constant, computed
}

// keysOf says how many arguments of a command are keys; -1: all of them.
var keysOf = map[string]int{
	"PUBLISH": 0, "SPUBLISH": 0, "PUBSUB": 0, "TIME": 0,
	"DEL": -1, "UNLINK": -1, "EXISTS": -1,
	"RENAME": 2, "RPOPLPUSH": 2, "LMOVE": 2,
	"GET": 1, "GETRANGE": 1, "SET": 1, "INCR": 1, "INCRBY": 1, "DECR": 1, "DECRBY": 1, "TYPE": 1,
	"PTTL": 1, "PEXPIRE": 1, "PEXPIREAT": 1, "PERSIST": 1,
	"HGET": 1, "HSET": 1, "HMGET": 1, "HDEL": 1, "HEXISTS": 1, "HGETALL": 1, "HINCRBY": 1, "HKEYS": 1, "HRANDFIELD": 1, "HVALS": 1, "HLEN": 1, "HSETNX": 1,
	"LPUSH": 1, "RPUSH": 1, "LPOP": 1, "RPOP": 1, "LREM": 1, "LSET": 1, "LINDEX": 1, "LRANGE": 1, "LLEN": 1,
	"SADD": 1, "SREM": 1, "SISMEMBER": 1, "SMEMBERS": 1, "SCARD": 1,
	"ZADD": 1, "ZREM": 1, "ZSCORE": 1, "ZMSCORE": 1, "ZINCRBY": 1, "ZCARD": 1, "ZCOUNT": 1, "ZRANGE": 1, "ZRANGEBYSCORE": 1, "ZREMRANGEBYSCORE": 1, "ZREMRANGEBYRANK": 1,
}

// keyFaults returns the calls of redis whose keys do not come from KEYS.
func keyFaults(source string) (faults []string) {
	tokens := luaTokens(source)
	keys := keyNames(tokens)
	isKey := func(arg []string) bool {
		if len(arg) > 3 && arg[0] == "timeout_key" && arg[1] == "(" && arg[len(arg)-1] == ")" {
			arg = luaList(arg[2:])[0] // readwrite.timeout.luainc stays in the slot of the lock that it is given
		}
		return (len(arg) == 1 && keys[arg[0]]) || isKeysEntry(arg)
	}
	for i, token := range tokens {
		if token != "redis" {
			continue
		}
		verb := tokenAt(tokens, i+2)
		if verb != "call" && verb != "pcall" {
			continue // redis.error_reply and the like
		}
		if tokenAt(tokens, i+3) != "(" {
			faults = append(faults, "redis."+verb+" is not called where it stands")
			continue
		}
		args := luaList(tokens[i+4:])
		command := strings.ToUpper(strings.Trim(strings.Join(args[0], ""), `'"`))
		n, known := keysOf[command]
		switch {
		case len(args[0]) != 1 || !strings.ContainsAny(args[0][0][:1], `'"`):
			faults = append(faults, fmt.Sprintf("the command %q is computed", args[0]))
			continue
		case !known:
			faults = append(faults, fmt.Sprintf("add to keysOf which arguments of %s are keys", command))
			continue
		case n < 0:
			n = len(args) - 1
		}
		if len(args) <= n {
			faults = append(faults, command+" has too few arguments")
			continue
		}
		for _, arg := range args[1 : 1+n] {
			if !isKey(arg) {
				faults = append(faults, fmt.Sprintf("%s of the key %q, which is not from KEYS", command, strings.Join(arg, " ")))
			}
		}
	}
	return faults
}

// isKeysEntry says whether an expression is KEYS[...] and nothing else.
func isKeysEntry(expr []string) bool {
	return len(expr) > 3 && expr[0] == "KEYS" && expr[1] == "[" && slices.Index(expr, "]") == len(expr)-1
}

// keyNames returns the variables, and the parameters of functions, that never hold
// anything but an entry of KEYS.
func keyNames(tokens []string) map[string]bool {
	keys := map[string]bool{}
	bind := func(name string, key bool) {
		was, known := keys[name]
		keys[name] = key && (was || !known)
	}
	for i, token := range tokens {
		switch {
		case token == "for": // for i, key in ipairs(KEYS) do
			names, rest := luaNames(tokens[i+1:])
			for n, name := range names {
				bind(name, n == 1 && slices.Equal(rest[:min(5, len(rest))], []string{"in", "ipairs", "(", "KEYS", ")"}))
			}
		case startsStatement(tokens, i):
			names, rest := luaNames(tokens[i:])
			if tokenAt(rest, 0) != "=" {
				continue
			}
			values := luaList(rest[1:])
			for n, name := range names {
				bind(name, n < len(values) && isKeysEntry(values[n]))
			}
		}
	}
	for i, token := range tokens {
		if token != "function" || tokenAt(tokens, i-1) != "local" {
			continue
		}
		name, params := tokens[i+1], luaList(tokens[i+3:])
		for j, token := range tokens {
			if token != name || j == i+1 || tokenAt(tokens, j+1) != "(" {
				continue
			}
			args := luaList(tokens[j+2:])
			for n, param := range params {
				if len(param) == 1 {
					bind(param[0], n < len(args) && (len(args[n]) == 1 && keys[args[n][0]] || isKeysEntry(args[n])))
				}
			}
		}
	}
	maps.DeleteFunc(keys, func(_ string, key bool) bool { return !key })
	return keys
}

// startsStatement says whether a name at i may be what is assigned to.
func startsStatement(tokens []string, i int) bool {
	if !isLuaName(tokens[i]) {
		return false
	}
	return slices.Contains([]string{"", "\n", ";", "local", "do", "then", "else", "repeat"}, tokenAt(tokens, i-1))
}

// luaNames reads names that are separated by commas.
func luaNames(tokens []string) (names, rest []string) {
	for i := 0; ; i += 2 {
		if isLuaName(tokenAt(tokens, i)) {
			names = append(names, tokens[i])
		}
		if tokenAt(tokens, i+1) != "," {
			return names, tokens[min(i+1, len(tokens)):]
		}
	}
}

// luaList reads expressions that are separated by commas, up to the line's end
// or the parenthesis that closes the list.
func luaList(tokens []string) [][]string {
	list := [][]string{nil}
	depth := 0
	for _, token := range tokens {
		switch token {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
		switch {
		case depth < 0 || (depth == 0 && token == "\n"):
			return list
		case depth == 0 && token == ",":
			list = append(list, nil)
		case token != "\n":
			list[len(list)-1] = append(list[len(list)-1], token)
		}
	}
	return list
}

// globals returns the names that are assigned to and nowhere declared.
func globals(tokens []string) (faults []string) {
	declared := map[string]bool{}
	for i, token := range tokens {
		if token == "local" || token == "for" {
			names, _ := luaNames(tokens[i+1:])
			for _, name := range names {
				declared[name] = true
			}
		}
		if token == "function" {
			if tokenAt(tokens, i-1) == "local" {
				declared[tokenAt(tokens, i+1)] = true
			} else if isLuaName(tokenAt(tokens, i+1)) {
				faults = append(faults, tokens[i+1])
			}
		}
	}
	for i := range tokens {
		if !startsStatement(tokens, i) {
			continue
		}
		names, rest := luaNames(tokens[i:])
		if tokenAt(rest, 0) != "=" {
			continue
		}
		for _, name := range names {
			if !declared[name] {
				faults = append(faults, name)
			}
		}
	}
	return faults
}
