# A run that was stopped and goes on ends with the same bits as one that never was: stopped after an epoch, by
# Ctrl-C in the middle of one, or killed. S and T come from the checkpoint.
. "$SOURCE/tests/cli/harness"

train="train $quick --batch-size 32 --pad 1 --lr-scheduler cosine"
ok $train --epochs 6 --output-dir whole
want=$(hash_of_out) || exit 1

# the schedule knows of 6 epochs from the beginning, so the first part is a run that is killed in the third
rm -f out err
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
interrupted "epoch 2/6, step 3" $train --epochs 6 --print-freq 1 --output-dir stopped
has err "convoy: stopped: interrupted in epoch"

# the command that it prints is all that it takes, and it goes on in the same folder
command=$(sed -n 's/^convoy: stopped: .* go on with: //p' err)
same "$command" "convoy train --resume stopped" "the printed command"
(convoy() { "$CONVOY" "$@"; }; eval "$command") >out 2>err || { cat out err; die "$command"; }
same "$(hash_of_out)" "$want" "interrupted and resumed"
cmp whole/last/model.safetensors stopped/last/model.safetensors || die "the files differ"
has stopped/run.json "\"weights_xxh3\": \"$want\""
! grep -q "warning" err || { cat err; die "a warning, though nothing changed"; }

# a finished run has nothing left to do, and says what it reached
ok $train --epochs 6 --resume whole
same "$(hash_of_out)" "$want" "a finished run, resumed"
has out "6 epochs are done already, --epochs asks for 6: nothing is left to train"

# in the middle of an epoch nothing goes on that changes its order or size; any other change is named
long="--data synthetic:1x8x8,classes=10,images=4000 --model lenet5 --devices cpu:0 --threads-per-device 1
    --batch-size 8 --epochs 1"
interrupted "epoch 1/1, step 3/" train $long --print-freq 1 --output-dir changed
fails 2 "with --batch-size 64 (was 8)" train --resume changed --batch-size 64
fails 2 "with --seed 5 (was 0)" train --resume changed --seed 5
fails 2 "with order --no-shuffle (was --shuffle)" train --resume changed/last --no-shuffle
fails 2 "with training images 1437 (was 4000)" train --resume changed --data digits
ok train --resume changed --pad 2 --print-freq 1000
has err "convoy: warning: this run goes on otherwise than it began: images 1x8x8 resize=0 pad=2"
ok train --resume changed --epochs 2 --batch-size 64 --print-freq 1000
has err "convoy: warning: this run goes on otherwise than it began: --batch-size 64 (was 8)"

fails 2 "--shards 3: the checkpoint" $train --epochs 7 --resume whole --shards 3
fails 2 "--threads-per-device 2: the checkpoint" $train --epochs 7 --resume whole --threads-per-device 2
fails 2 "--opt adamw: the checkpoint" $train --epochs 7 --resume whole --opt adamw
fails 3 "nowhere: no checkpoint is there" $train --epochs 7 --resume nowhere

# what is not as it was written is named, before anything is read from it; without a manifest the files must do
cp -r whole hurt
printf x | dd of=hurt/last/optimizer.safetensors bs=1 seek=900 conv=notrunc 2>/dev/null
fails 3 "hurt/last/optimizer.safetensors: is damaged: its xxh3 is" train --epochs 7 --resume hurt
has err "; --resume auto, with the run's --output-dir, takes the newest that is whole"
cp whole/last/optimizer.safetensors hurt/last/
printf x >>hurt/last/model.safetensors
fails 3 "hurt/last/model.safetensors: is damaged: it has" train --epochs 7 --resume hurt
fails 3 "hurt/last/model.safetensors: is damaged: it has" eval --weights hurt/last --data digits
rm hurt/last/model.safetensors
fails 3 "hurt/last/model.safetensors: cannot be opened" train --epochs 7 --resume hurt
cp whole/last/model.safetensors hurt/last/
rm hurt/last/manifest.json
ok train --epochs 7 --resume hurt
has err "hurt/last has no manifest.json: an earlier version of Convoy wrote it"
[ -f hurt/last/manifest.json ] || die "the new checkpoint has no manifest"

echo '{"epoch": -1}' >whole/last/state.json
fails 3 "state.json: is damaged" $train --epochs 7 --resume whole
rm whole/last/manifest.json
fails 3 "state.json" $train --epochs 7 --resume whole

# a run of pipelines goes on under another strategy: mesh and schedule stay with the old one
rm -rf pipes
ok train --data digits --model lenet5 --batch-size 256 --epochs 1 --strategy hybrid --mesh data=2,pipe=2 --schedule gpipe \
    --devices cpu:0-3 --shards 4 --threads-per-device 1 --output-dir pipes
ok train --resume pipes --epochs 2 --strategy ddp --devices cpu:0-1
ok train --resume pipes --epochs 3 --strategy pipeline --devices cpu:0-1
fails 2 "no run.json" train --resume pipes/nowhere

# what steps depend on, and a checkpoint does not say: flags that are not those of run.json; a finished run keeps its own
ok train $quick --epochs 1 --output-dir rate
cp rate/run.json before.json
ok train --resume rate --lr 0.02 --wd 0.1
has out "nothing is left to train"
cmp rate/run.json before.json || die "run.json of a finished run has flags that it was not trained with"
ok train --resume rate --lr 0.02 --wd 0.1 --clip-grad-norm 3 --epochs 2
has err "this run goes on otherwise than it began: --lr 0.02 (was 0.05), --weight-decay 0.1 (was not given), --clip-grad-norm 3 (was 0)"
ok train --resume rate --epochs 3
! grep -q 'otherwise' err || { cat err; die "nothing but --epochs is another, of a schedule without an end"; }
ok train --resume rate --epochs 4 --lr-scheduler cosine
has err "began: --lr-scheduler cosine (was step), --epochs 4 (was 3)"
cp rate/run.json flags.json
echo '{' >rate/run.json
fails 2 "rate/run.json: line 2: string or '}' expected near end of file; that file has the flags of the run: --config FILE" \
    train --resume rate
ok train --resume rate --config flags.json --epochs 5
