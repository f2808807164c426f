# convoy why: from a run to a verdict; only the form of what it says is checked here, as times vary. Verdicts and gains:
# src/engine/faults_test.c.
. "$SOURCE/tests/cli/harness"

fails 2 "convoy why OUTPUT_DIR: give the one folder of a run with --profile" why
fails 2 "convoy why OUTPUT_DIR: give the one folder of a run with --profile" why a b
fails 2 "none/profile.json: unable to open none/profile.json: No such file or directory; \`convoy train --profile" why none
mkdir bad
echo '{"version": 1' >bad/profile.json
fails 3 "bad/profile.json: '}' expected near end of file" why bad
echo '{"version": 1}' >bad/profile.json
fails 3 'bad/profile.json: there is no text "model"' why bad
echo '{"version": 7}' >bad/profile.json
fails 3 "bad/profile.json: its version is 7, this program reads version 1" why bad

# shellcheck disable=SC2086  # words
for devices in "cpu:0 --strategy single" "cpu:0-1 --strategy pipeline" "cpu:0-1 --strategy ddp" async:0-1; do
    ok train $quick --epochs 1 --devices $devices --output-dir run --overwrite --profile
    ok why run
    has out "on digits, "
    has out "a step: "
    case $devices in
    async*) has out "what these devices do is not timed here" ;;
    *) grep -q "^compute-bound: \|^1\. [a-z -]*: " out || { cat out; die "no verdict of $devices"; } ;;
    esac
    ok why run --json
    for key in steps step_us wait_us span_us mended_us compute_share conv_share timed verdicts; do
        has out "\"$key\": "
    done
done

# too short, or interrupted too early
sed 's/"steps": .*/"steps": 0,/' run/profile.json >bad/profile.json
fails 3 "bad/profile.json: no step was measured, the run was too short: train for more steps" why bad
