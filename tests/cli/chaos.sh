# Runs that are killed at random moments go on and end with the same bits: bench/chaos with few kills.
. "$SOURCE/tests/cli/harness"

case $SANITIZE in
*thread*) n=3 ;;
*) n=8 ;;
esac
"$SOURCE/bench/chaos" $n >out 2>err || { cat out err; die "bench/chaos failed"; }
has out "$n kills ("
