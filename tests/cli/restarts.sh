# --max-restarts N: a run that is killed is started anew from its newest checkpoint, and ends with the same bits; what is
# wrong in itself is not tried again; a signal to the parent stops both.
. "$SOURCE/tests/cli/harness"

train="train $quick --batch-size 16 --epochs 3 --print-freq 1"
ok $train
hash=$(hash_of_out) || exit 1

fails 2 "--max-restarts: give the --output-dir" $train --max-restarts 2
fails 2 "--max-restarts and --overwrite" $train --max-restarts 2 --output-dir run --overwrite
fails 2 "--max-restarts goes with --resume auto alone" $train --max-restarts 2 --output-dir run --resume other

# until_there TEXT: in the file out
until_there() {
    i=0
    until grep -q "$1" out 2>/dev/null; do
        i=$((i + 1))
        [ $i -lt 600 ] || { cat out err; die "no '$1' after a minute"; }
        sleep 0.1
    done
}
child_of() { cat /proc/"$1"/task/"$1"/children | tr -d ' '; }

rm -f out err
"$CONVOY" $train --max-restarts 2 --output-dir run --checkpoint-every 10 >out 2>err &
pid=$!
until_there "epoch 1/3, step 5/"
kill -KILL "$(child_of $pid)"
wait $pid || { cat out err; die "the run that was started anew failed"; }
has err "convoy: the run ended with signal 9, Killed: restart 1 of 2"
has err "convoy: --resume auto"
same "$(hash_of_out)" "$hash" "killed and started anew"
no_leftovers run

# bad data: exit code 3, at once
fails 3 "nowhere" train --data folder:nowhere --model lenet5 --max-restarts 2 --output-dir bad
! grep -q "restart 1" err || die "bad data were tried again"

# a signal to the parent stops the child after a checkpoint, and nobody starts it anew
long="--data synthetic:1x8x8,classes=10,images=40000 --model lenet5 --devices cpu:0 --threads-per-device 1 --batch-size 8"
rm -f out err
"$CONVOY" train $long --epochs 50 --print-freq 1 --max-restarts 2 --output-dir stopped >out 2>err &
pid=$!
until_there "epoch 1/50, step 3/"
kill -TERM $pid
wait $pid
same $? 130 "exit code after SIGTERM"
has err "go on with: convoy train --resume stopped"
! grep -q "restart 1" err || die "stopped, and started anew"
