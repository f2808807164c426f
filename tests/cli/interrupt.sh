# Signals: train stops after the step in hand and says so at once, a second one ends it at once, everything else ends at
# once; always with exit code 130. Closed standard files and terminals of any width do no harm.
. "$SOURCE/tests/cli/harness"

long="train --data synthetic:1x8x8,classes=10,images=40000 --model lenet5 --devices cpu:0 --threads-per-device 1
    --batch-size 8 --epochs 50 --print-freq 1"

# wait_for FILE TEXT
wait_for() {
    i=0
    until grep -q "$2" "$1" 2>/dev/null; do
        i=$((i + 1))
        [ $i -lt 600 ] || { cat "$1"; die "no '$2' in $1 after a minute"; }
        sleep 0.1
    done
}

# until_caught PID: a SIGINT is no longer the end of it: the program blocks it, for the thread that waits for signals.
until_caught() {
    i=0
    until grep -q '^SigBlk:.*[2367abef]$' /proc/"$1"/status; do # the second lowest bit
        i=$((i + 1))
        [ $i -lt 1200 ] || die "SIGINT is not blocked after a minute"
        sleep 0.05
    done
}

for signal in INT TERM HUP; do
    # under nohup, where this test may run too, it is ignored, and must be
    [ $signal != HUP ] || ! grep -q '^SigIgn:.*[13579bdf]$' /proc/$$/status || continue
    rm -f out err
    "$CONVOY" $long --output-dir run-$signal >out 2>err &
    pid=$!
    wait_for out "epoch 1/50, step 3/"
    kill -$signal $pid
    wait $pid
    same $? 130 "exit code after SIG$signal"
    has err "convoy: stopping after this step; Ctrl-C again: at once"
    has err "go on with: convoy train --resume run-$signal"
    [ -f run-$signal/last/state.json ] || die "no checkpoint after SIG$signal"
done

# nohup: a hang-up is no reason to stop
rm -f out err
(trap '' HUP; exec "$CONVOY" $long --output-dir nohup >out 2>err) &
pid=$!
wait_for out "epoch 1/50, step 3/"
kill -HUP $pid
kill -TERM $pid
wait $pid
same $? 130 "exit code of nohup"
same "$(grep -c 'stopping after' err)" 1 "one signal of two was heard"

# the second one comes while the first one's step goes on: SIGSTOP holds the program until both are there
rm -f out err
"$CONVOY" $long --output-dir twice >out 2>err &
pid=$!
wait_for out "epoch 1/50, step 3/"
kill -STOP $pid
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
wait $pid
same $? 130 "exit code after two signals"
ok train --resume run-INT --epochs 1 --print-freq 1000

# what does not train
large="--weights run-INT/last --data synthetic:1x8x8,classes=10,images=16000000"
for arguments in "eval $large" "train --test-only --model lenet5 $large"; do
    rm -f out err
    "$CONVOY" $arguments >out 2>err &
    pid=$!
    until_caught $pid
    sleep 0.3 # in the middle of it
    kill -INT $pid || die "too short to be interrupted: convoy $arguments"
    wait $pid
    same $? 130 "exit code of: convoy $arguments"
    same "$(cat err)" "convoy: stopped: interrupted" "last words of: convoy $arguments"
done

# progress must not end up in the files of the run
"$CONVOY" train $quick --print-freq 1 --epochs 1 --output-dir closed <&- >&- 2>&- || die "with closed files"
! grep -v '^{' closed/metrics.jsonl || die "no JSON in metrics.jsonl"
