# convoy bench tune writes a file; --tuning takes it, and what it sets is part of the run. What does not fit is refused.
. "$SOURCE/tests/cli/harness"

what="--model resnet20 --batch-size 64"
bench="$what --input 1x8x8 --num-classes 10 --steps 1 --rounds 1"
train="$what --data digits --epochs 1 --workers 0 --print-freq 1000"

ok bench tune $bench --any-shards --tuning found.json
has out " to divide the cores, 1 rounds of 1 steps each"
has out "convolutions: all direct, all Winograd"
has out "written: found.json"
for text in '"convoy": ' '"machine": ' '"date": ' '"model": "resnet20"' '"batch-size": "64"' '"threads-per-device": ' \
    '"forward:'; do has found.json "$text"; done
ok bench tune $bench --shards 2 --conv-algo direct --tuning fixed.json
has fixed.json '"shards": "2"'
ok train $train --tuning fixed.json
has out "S=2 "

# settings that this test fixes: what was found may be anything
machine=$(sed -n 's/^  "machine": \(.*\),$/\1/p' found.json)
version=$(sed -n 's/^  "convoy": \(.*\),$/\1/p' found.json)
exceptions=auto+forward:32x16x16x8x8=winograd+data:32x16x16x8x8=winograd
# file NAME VERSION MACHINE FLAGS
file() {
    echo "{\"convoy\": $2, \"machine\": $3, \"for\": {\"model\": \"resnet20\", \"batch-size\": \"64\"}, \"flags\": {$4}}" >"$1"
}
file made.json "$version" "$machine" \
    "\"devices\": \"cpu:0-1\", \"threads-per-device\": \"1\", \"shards\": \"2\", \"conv-algo\": \"$exceptions\""
ok train $train --tuning made.json --output-dir tuned
want=$(hash_of_out) || exit 1
has out "cpu:0-1 (ddp, S=2, T=1)"
has tuned/run.json "\"conv-algo\": \"$exceptions\""
! grep -q '"tuning"' tuned/run.json || die "run.json needs the tuning's file"
ok train --config tuned/run.json --data digits
same "$(hash_of_out)" "$want" "the run repeated without the file"
ok train $train --devices cpu:0 --shards 2 --threads-per-device 1 --conv-algo $exceptions
same "$(hash_of_out)" "$want" "the same settings as flags"
ok train $train --devices cpu:0 --shards 2 --threads-per-device 1
[ "$(hash_of_out)" != "$want" ] || die "the exceptions changed nothing"
cp -r tuned copy
ok train --resume tuned --epochs 2
want=$(hash_of_out) || exit 1
ok train --resume copy --epochs 2 --devices cpu:0
same "$(hash_of_out)" "$want" "gone on with on one device"
ok eval --weights tuned --data digits --batch-size 64 --tuning made.json
ok bench step $what --steps 1 --tuning made.json
has out "S=2 T=1, conv-algo auto tuned"
ok explain $what --tuning made.json

fails 2 "made for --batch-size 64, not 32" train $train --batch-size 32 --tuning made.json
fails 2 "made for --model resnet20, not lenet5" train $train --model lenet5 --tuning made.json
fails 2 "says --devices cpu:0-1: leave out --devices cpu:0, or the tuning" train $train --devices cpu:0 --tuning made.json
fails 2 "--tuning and --resume" train --resume tuned --tuning made.json
file other.json "$version" '"a machine"' ""
fails 2 "made on 'a machine', this is '" train $train --tuning other.json
file other.json '"0.0.1"' "$machine" ""
fails 2 "made by convoy 0.0.1, this is" train $train --tuning other.json
file other.json "$version" "$machine" '"lr": "1"'
fails 3 "'lr' is no flag that a tuning sets" train $train --tuning other.json
file other.json "$version" "$machine" '"shards": 2'
fails 3 "flag 'shards' is no text" train $train --tuning other.json
echo '{}' >other.json
fails 3 "is no file of" train $train --tuning other.json
fails 3 "nowhere.json" train $train --tuning nowhere.json
mkdir folder
fails 3 "--tuning folder: is a folder" train $train --tuning folder
fails 2 "--config folder: is a folder" train --config folder
fails 2 "nowhere to write to: give --tuning FILE" bench tune $bench
fails 2 "no model is named" bench tune --tuning x.json
fails 2 "only backend cpu has settings to tune, not reference" bench tune --model lenet5 --input 1x8x8 --batch-size 2 --steps 1 \
    --rounds 1 --backend reference --tuning x.json

# where it cannot be written is known before anything is measured
fails 1 "nowhere/new.json: cannot be written" bench tune --model lenet5 --input 1x8x8 --tuning nowhere/new.json
! grep -q 'divide the cores' out || die "it measured first"
