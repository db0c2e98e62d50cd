# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt bench all --html: one page with a plot for each benchmark and, if they are asked for,
# the papers' figures, which needs no other file and opens in headless Chromium
# without a word on the console.
set -eu
. "$SRC/tests/tool/common.sh"
/usr/bin/python3 -c 'import matplotlib' || skip "python3-matplotlib is missing"

cluster_up 2
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
must mpicrypt key new bench --keystore-dir "$CASE_DIR/keys"
page=$CASE_DIR/report.html
refuses 2 "have no --csv" bench all --html "$page" --csv x
refuses 2 "for one benchmark" bench all --schemes crypt
refuses 1 "cannot write" bench all --html "$CASE_DIR/none/report.html"
tool bench all "${quick[@]}" --size 4K,64K --shape 2x2 --order block --pairs 1 --dims 2 --compute 0 \
    --workload tile --op write,read --access row --data 1M --label bench --dir "$CASE_DIR" --html "$page" --published ||
    { cat "$CASE_DIR/err"; fail "bench all"; }

# look.py PAGE [SCREENSHOT]
cat > "$CASE_DIR/look.py" <<'END_PY'
import re, struct, sys, xml.dom.minidom, zlib
from html.parser import HTMLParser

names = ["speed", "pingpong", "pairs", "stencil", "allgather", "bcast", "alltoall", "io"]
text = open(sys.argv[1], encoding="utf-8").read()

class Page(HTMLParser):
    stack, sections = [], []
    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            assert name not in ("src", "srcset", "href", "onload"), (tag, name, value)
            assert name != "xlink:href" or value.startswith("#"), (tag, name, value)
        assert tag not in ("script", "link", "img", "iframe", "object", "embed"), tag
        if tag != "meta":
            self.stack.append(tag)
        if tag == "section":
            self.sections.append(dict(attributes)["id"])
    def handle_endtag(self, tag):
        if tag != "meta":
            assert self.stack.pop() == tag, tag

page = Page()
page.feed(text)
page.close()
assert page.stack == [], page.stack
assert page.sections == names, page.sections
assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/(2000/svg|1999/xlink)\")", text)
ids = re.findall(r'<(?:path|clipPath)[^>]* id="(\w+)"', text)
assert len(ids) == len(set(ids)), "two pictures have parts of one name"

plots = {}
for name, section in re.findall(r'<section id="(\w+)">(.*?)</section>', text, re.S):
    pictures = re.findall(r"<svg .*?</svg>", section, re.S)
    for picture in pictures:
        document = xml.dom.minidom.parseString(picture)
        assert len(document.getElementsByTagName("path")) > 2
        words = [node.firstChild.data for node in document.getElementsByTagName("text")]
        assert name in ("speed", "io") or {"4K", "64K"} <= set(words), words
    plots[name] = len(pictures)
papers = ("pingpong", "pairs", "stencil", "allgather", "bcast", "alltoall")
assert plots == {name: 2 if name in papers else 1 for name in names}, plots
assert "paper: CryptMPI" in text and "Table III" in text

if len(sys.argv) > 2:
    data = open(sys.argv[2], "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    at, packed = 8, b""
    while at < len(data):
        size, what = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if what == b"IDAT" else b""
        at += size + 12
    assert depth == 8 and kind in (2, 6), (depth, kind)
    raw = zlib.decompress(packed)
    line = width * {2: 3, 6: 4}[kind] + 1
    # Lines that are not of one color: with filters, those whose bytes differ.
    drawn = sum(1 for y in range(height) if len(set(raw[y * line + 1:(y + 1) * line])) > 8)
    print("screenshot", width, height, drawn)
    assert drawn > 1000, drawn
print(plots)
END_PY
must python3 "$CASE_DIR/look.py" "$page"

# One benchmark; and one that fails leaves a page and says so.
must tool bench pingpong "${quick[@]}" --size 64K --html "$CASE_DIR/one.html"
must grep -q '<section id="pingpong">' "$CASE_DIR/one.html"
must_fail grep -q '<section id="pairs">' "$CASE_DIR/one.html"
refuses 1 "pingpong failed" bench pingpong "${quick[@]}" --size 64K --html "$CASE_DIR/bad.html" 'mine pml=crypt no_such_parameter=1'
must grep -q "no_such_parameter" "$CASE_DIR/bad.html"
must tool bench bcast "${quick[@]}" --shape 2x2 --order block --size 4K --html "$CASE_DIR/bcast.html"
must_fail grep -q "paper: " "$CASE_DIR/bcast.html"

command -v chromium > /dev/null || { echo "skipped: chromium is missing (Debian: chromium)"; exit 0; }
export HOME=$CASE_DIR
timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --enable-logging=stderr --window-size=1400,9000 --user-data-dir="$CASE_DIR/chromium" \
    --screenshot="$CASE_DIR/report.png" "file://$page" > "$CASE_DIR/console" 2>&1 || { tail -n 20 "$CASE_DIR/console"; fail "chromium"; }
must_fail grep -E "CONSOLE|ERR_" "$CASE_DIR/console"
must python3 "$CASE_DIR/look.py" "$page" "$CASE_DIR/report.png"
# What it logs is seen: a page that complains is noticed.
echo '<script>console.error("planted")</script>' > "$CASE_DIR/loud.html"
timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-logging=stderr \
    --user-data-dir="$CASE_DIR/chromium" --screenshot="$CASE_DIR/loud.png" "file://$CASE_DIR/loud.html" > "$CASE_DIR/console" 2>&1 || true
must grep -q "CONSOLE.*planted" "$CASE_DIR/console"
