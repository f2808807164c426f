# A run that was stopped and goes on ends with the same bits as one that never was: stopped after an epoch, by
# Ctrl-C in the middle of one, or killed. S and T come from the checkpoint.
. "$SOURCE/tests/cli/harness"

train="train $quick --batch-size 32 --pad 1 --lr-scheduler cosine"
ok $train --epochs 6 --output-dir whole
want=$(hash_of_out) || exit 1

# the schedule knows of 6 epochs from the beginning, so the first part is a run that is killed in the third
"$CONVOY" $train --epochs 6 --output-dir part >out 2>err &
pid=$!
i=0
until grep -q '"epoch": *[23],' part/last/state.json 2>/dev/null; do
    i=$((i + 1))
    [ $i -lt 600 ] || die "no checkpoint after a minute"
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
ok eval --weights part/last --data digits # a whole checkpoint, whenever the kill came
ok train --data digits --model lenet5 --devices cpu:0-1 --batch-size 32 --lr 0.05 --workers 0 --pad 1 \
    --lr-scheduler cosine --epochs 6 --resume part --output-dir part
has out "S=2 T=1"
same "$(hash_of_out)" "$want" "killed and resumed on two devices"
cmp whole/last/model.safetensors part/last/model.safetensors || die "the files differ"
no_leftovers part

# Ctrl-C: exit code 130, after a checkpoint in the middle of the epoch
"$CONVOY" $train --epochs 6 --print-freq 1 --output-dir stopped >out 2>err &
pid=$!
i=0
until grep -q "epoch 2/6, step 3" out; do
    i=$((i + 1))
    [ $i -lt 600 ] || die "no step after a minute"
    sleep 0.1
done
kill -INT $pid
wait $pid
same $? 130 "exit code after Ctrl-C"
has err "convoy: stopped: interrupted in epoch"
ok $train --epochs 6 --resume stopped --output-dir stopped
same "$(hash_of_out)" "$want" "interrupted and resumed"

# a finished run has nothing left to do, and says what it reached
ok $train --epochs 6 --resume whole
same "$(hash_of_out)" "$want" "a finished run, resumed"

fails 2 "--shards 3: the checkpoint" $train --epochs 7 --resume whole --shards 3
fails 2 "--threads-per-device 2: the checkpoint" $train --epochs 7 --resume whole --threads-per-device 2
fails 2 "--opt adamw: the checkpoint" $train --epochs 7 --resume whole --opt adamw
fails 3 "nowhere: no checkpoint is there" $train --epochs 7 --resume nowhere
echo '{"epoch": -1}' >whole/last/state.json
fails 3 "state.json" $train --epochs 7 --resume whole
