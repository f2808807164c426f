# A process is killed or stopped: within the deadline every other one has said which, where it was, and has ended with
# code 4; nothing is left behind.
. "$SOURCE/tests/cluster/harness"

timeout_s=3
lines train --data digits --model resnet20 --batch-size 64 --epochs 1000 --workers 1 --print-freq 1 --devices cpu:0 \
    --shards 4 --threads-per-device 1 --timeout $timeout_s >args

# lose LIBRARY SIGNAL RANK: that rank of four gets the signal in the middle of the training.
lose() {
    library=$1 signal=$2 lost=$3
    others=$(seq 0 3 | grep -v "$lost")
    start "$library" 4
    until_training
    begun=$(now)
    kill -"$signal" "$(cat pid."$lost")"
    for rank in $others; do
        until_there 20 code."$rank"
    done
    took=$(($(now) - begun))
    # shellcheck disable=SC2086  # words
    ended_with 4 $others
    # shellcheck disable=SC2086
    says "rank $lost is lost" $others
    # those that were left the time also say at which step and in what
    for rank in $others; do
        [ "$(cat code."$rank")" -ne 4 ] || says "step [0-9][0-9]*: [a-z]" "$rank"
    done
    [ $took -lt $((timeout_s * 1000 + 1500)) ] || die "$took ms until all knew"
    [ "$signal" != STOP ] || kill -KILL "$(cat pid."$lost")" 2>/dev/null
    nobody_left
    echo "$library: rank $lost, SIG$signal: $took ms"
}

for library in $libraries; do
    lose $library KILL 2
    lose $library KILL 0
    lose $library STOP 2
    lose $library STOP 0
done
