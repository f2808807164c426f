# report.html: written at the end of a run, of everything that docs/report.md says, one file that asks for nothing from
# elsewhere; well-formed; and where Chromium is there, a page that shows, light and dark.
. "$SOURCE/tests/cli/harness"

# The page's structure: tags that close, nothing loaded from anywhere, no script.
check_page() {
    python3 - "$1" <<'END' || die "$1 is no page of its own"
import html.parser, re, sys

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], []
    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "iframe", "object"), tag
        for name, value in attributes:
            assert name not in ("src", "href") or value.startswith("data:image/"), (tag, name, value[:40])
            assert not name.startswith("on"), (tag, name)
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        pass
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()
    def handle_data(self, data):
        self.text.append(data)

text = open(sys.argv[1], encoding="utf-8").read()
page = Page()
page.feed(text)
page.close()
assert not page.open, page.open
assert "url(" not in text and "@import" not in text
assert not re.search(r"\b(nan|inf)\b", re.sub(r"<details>.*</details>|base64,[^\"]*", "", text, flags=re.S)), "a number is none"
END
}

# shellcheck disable=SC2086
ok train $quick --devices cpu:0-1 --epochs 2 --output-dir run
test -f run/report.html || die "no report.html"
check_page run/report.html
for part in "Loss" "Accuracy" "Learning rate" "Speed" "One step" "What is taken for what" "The worst mistakes" \
    "The run" "Settings" "cpu:1" "$(hash_of_out)"; do
    has run/report.html "$part"
done

# what it says is what was: the accuracy, and the matrix counts each image of the validation once
has run/report.html "<b>$(sed -n 's/^done: top-1 \([0-9.]* %\) .*/\1/p' out)</b>"
n=$(grep -o 'taken for [^:<]*: [0-9]* of' run/report.html | sed 's/.*: //; s/ of//' | awk '{ n += $1 } END { print n }')
same "$n" "$(sed -n 's/^done: top-1 .* of \([0-9]*\) images.*/\1/p' out)" "images in the confusion matrix"
cells=$(grep -o 'taken for [^:<]*: [0-9]* of' run/report.html | awk '{ n += ($0 ~ /./) } END { print n }')
same "$cells" 100 "cells of the matrix"
wrong=$(grep -c '<figure>' run/report.html)
[ "$wrong" -ge 1 ] && [ "$wrong" -le 24 ] || die "$wrong pictures"
same "$(grep -o 'data:image/png;base64,' run/report.html | wc -l)" "$wrong" "pictures that are shown"

# a run that goes on has the whole run's curves; names from outside are no markup
mkdir -p 'set<b>/train/<i>x' 'set<b>/train/a&b' 'set<b>/val/<i>x' 'set<b>/val/a&b'
i=0
for image in "$SOURCE"/tests/data/images/*.jpg; do
    i=$((i + 1))
    class=$(test $((i % 2)) = 0 && echo '<i>x' || echo 'a&b')
    cp "$image" "set<b>/train/$class"
    cp "$image" "set<b>/val/$class"
done
ok train --data 'folder:set<b>' --model resnet20 --resize 32 --crop 32 --batch-size 4 --epochs 1 --workers 0 --output-dir odd
check_page odd/report.html
has odd/report.html '&lt;i&gt;x'
! grep -q '<i>' odd/report.html || die "a class's name is markup"
# shellcheck disable=SC2086
ok train $quick --epochs 3 --resume run
check_page run/report.html
same "$(grep -o 'validation at [0-9]*:' run/report.html | sort -u | wc -l)" 3 "epochs in the chart"

# a backend that says nothing of its kind
# shellcheck disable=SC2086
ok train $quick --devices reference:0 --data synthetic:1x8x8,classes=10,images=128 --epochs 1 --output-dir plain
has plain/report.html "reference"

# nothing is asked of a run without a folder, and a report that cannot be written costs no run
# shellcheck disable=SC2086
ok train $quick --epochs 1
# shellcheck disable=SC2086
ok train $quick --epochs 1 --output-dir late --overwrite
rm late/report.html && mkdir late/report.html
# shellcheck disable=SC2086
ok train $quick --epochs 1 --output-dir late --overwrite
has err "there is no report.html"

# A run that is killed while it writes its report writes it when it goes on. What holds it there: instead of the temporary
# file a FIFO stands, with room for a page and a reader that reads nothing.
mkdir cut && mkfifo cut/report.html.tmp
# shellcheck disable=SC2086
python3 - "$CONVOY" train $quick --epochs 1 --output-dir cut >out 2>err <<'END' || { cat out err; die "no run was killed"; }
import fcntl, os, select, subprocess, sys
F_SETPIPE_SZ = 1031  # Linux; Python has it from 3.10 on
fifo = os.open("cut/report.html.tmp", os.O_RDWR)
fcntl.fcntl(fifo, F_SETPIPE_SZ, 4096)
run = subprocess.Popen(sys.argv[1:])
while run.poll() is None and not select.select([fifo], [], [], 0.1)[0]:
    pass
run.kill()
sys.exit(0 if run.wait() == -9 else 1)
END
! test -e cut/report.html || die "the report was written before its run was killed"
rm cut/report.html.tmp
# shellcheck disable=SC2086
ok train $quick --epochs 1 --resume cut
check_page cut/report.html
has cut/run.json '"result"'

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no Chromium: the page was not shown"
# Chromium's sandbox wants a user of its own; the page is a file of ours.
show() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$PWD/profile" \
        --window-size=1100,2000 --screenshot="$PWD/$1" "$2" "file://$PWD/run/report.html" >chromium.log 2>&1 &&
        test -s "$1" || { tail -n 5 chromium.log; die "Chromium drew no $1"; }
}
mkdir -p light/train/page light/val/page dark/train/page dark/val/page
show light/train/page/a.png --blink-settings=preferredColorScheme=1
show dark/train/page/a.png --blink-settings=preferredColorScheme=0
cp light/train/page/a.png light/val/page
cp dark/train/page/a.png dark/val/page
# the mean level of the page, 0 to 1: a white or black sheet would be 1 or 0
level() {
    ok data stats "folder:$1" --json
    python3 -c 'import json, sys; mean = json.load(open("out"))["train"]["mean"]; print(sum(mean) / len(mean))'
}
light=$(level light) dark=$(level dark)
awk "BEGIN { exit !($light > 0.8 && $light < 0.995 && $dark > 0.06 && $dark < 0.35) }" ||
    die "mean levels of the page: light $light, dark $dark"
