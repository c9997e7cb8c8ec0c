#!/bin/bash
# Tests tests/limit, on which every other test relies to end when it hangs.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

gives "the command's exit status is passed on" 7 '' tests/limit 60 sh -c 'exit 7'
gives "so is its output, and its input" 0 '^words$' sh -c 'echo words | tests/limit 60 cat'

# A command and its child, both of which ignore SIGTERM.
stubborn() {
    trap '' TERM
    sleep 600 &
    echo $! >"$1"
    wait
}
export -f stubborn

gives "a command that hangs is ended with what it started, though they ignore SIGTERM" 124 '' \
    tests/limit 1 bash -c "stubborn $tmp/child"
is "its child is gone" "$(ps -o stat= -p "$(<"$tmp/child")" | grep -vc Z)" 0

start told tests/limit 600 bash -c "sleep 600 & echo \$! >$tmp/grandchild; wait"
wait_until 60 test -s "$tmp/grandchild" || not_ok "the command starts" "it does not"
kill -TERM "${pid[told]}"
ends "SIGTERM is passed on" told 60 143 ''
is "to what the command started, too" "$(ps -o stat= -p "$(<"$tmp/grandchild")" | grep -vc Z)" 0
finish
