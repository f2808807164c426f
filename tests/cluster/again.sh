# The shell function of docs/checkpoints.md starts a job anew that lost a process: it goes on and ends with the same bits.
# Under a launcher --max-restarts is refused, for one process cannot start the others anew.
. "$SOURCE/tests/cluster/harness"

eval "$(sed -n '/^again() {/,/^}/p' "$SOURCE/docs/checkpoints.md")"
train="train --data digits --model lenet5 --batch-size 64 --epochs 8 --print-freq 1 --checkpoint-every 5 --shards 2
    --threads-per-device 1"
ok $train --devices cpu:0-1
want=$(hash_of_out) || exit 1

# ranks DIR: the processes that train into it
ranks() {
    for file in $(grep -las -- "$PWD/$1" /proc/[0-9]*/cmdline); do
        [ "$(cat "${file%/cmdline}/comm" 2>/dev/null)" != convoy ] || echo "$file" | tr -dc '0-9\n'
    done
}

for library in $libraries; do
    rm -f out
    # shellcheck disable=SC2046  # words
    again 3 timeout 120 $(launcher "$library" 2) "$CONVOY" $train --devices cpu:0 --timeout 5 --resume auto \
        --output-dir "$PWD/$library" >out 2>err </dev/null &
    job=$!
    end=$(($(now) + 60000))
    until [ -e "$library/last/manifest.json" ]; do # written aside: some steps after the one that it holds
        [ "$(now)" -lt $end ] || { cat out err; die "no checkpoint in time"; }
        sleep 0.02
    done
    kill -KILL "$(ranks "$library" | tail -n 1)" || { cat out err; die "$library: the training was over before the kill"; }
    wait $job || { tail -n 5 out err; die "$library: not done after being started anew"; }
    has err "convoy: --resume auto takes $PWD/$library/last"
    same "$(hash_of_out)" "$want" "$library: killed and started anew"

    # shellcheck disable=SC2046
    timeout 60 $(launcher "$library" 2) "$CONVOY" $train --max-restarts 1 --output-dir "$PWD/refused" >out 2>err </dev/null &&
        die "$library: --max-restarts was not refused"
    has err "max-restarts: a launcher started this process"
done
