# Runs a program that ends when this script's standard input does.
#
#   sh -c "$SCRIPT" leash LITTER PROGRAM ARGUMENT...
#
# Each line of standard input is a signal for the program. At the end of it, the program is killed:
# the kernel closes the writing end of the pipe when its owner is gone, whatever became of it.
# LITTER is a folder to remove when the program has ended; it may be empty.
litter=$1
shift

# The shell gives what runs in the background an empty standard input, hence the copy.
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
exec >/dev/null 2>&1
{
    while read -r signal; do kill -s "$signal" "$program"; done
    kill -s KILL "$program"
} <&3 &
leash=$!
exec 3<&-

wait "$program"
code=$?
kill "$leash"
[ -z "$litter" ] || rm -rf "$litter"
exit "$code"
