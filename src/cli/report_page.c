/* See report_page.h. */
#include "cli/report_page.h"

#include <stdlib.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1d2126;--dim:#626b76;--line:#d9dde2;--card:#f6f7f9;"
    "--s0:#2f6fd0;--s1:#c2571a;--s2:#2a8f62;--s3:#8c4bb5;--heat:47,111,208;--bad:194,60,40}"
    "@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e4e7ea;--dim:#98a1ab;--line:#343a41;"
    "--card:#1d2126;--s0:#6ea3f2;--s1:#ee9157;--s2:#5cc796;--s3:#c08ae6;--heat:110,163,242;--bad:238,110,90}}"
    "body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;margin:0 auto;padding:24px;"
    "max-width:1100px}h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:32px 0 8px}"
    "p{margin:4px 0}.dim{color:var(--dim)}.row{display:flex;flex-wrap:wrap;gap:16px}"
    ".tile{background:var(--card);border-radius:8px;padding:10px 16px}.tile b{display:block;font-size:20px}"
    "svg{background:var(--card);border-radius:8px;max-width:100%;height:auto}"
    "svg text{font:12px system-ui,sans-serif;fill:var(--dim)}svg .h{fill:var(--fg);font-weight:600}"
    ".ax{stroke:var(--line)}.c{fill:none;stroke-width:1.6}"
    ".l0{stroke:var(--s0)}.l1{stroke:var(--s1)}.l2{stroke:var(--s2)}.l3{stroke:var(--s3)}"
    ".f0{fill:var(--s0)}.f1{fill:var(--s1)}.f2{fill:var(--s2)}.f3{fill:var(--s3)}.f4{fill:var(--dim)}"
    ".f5{fill:var(--line)}table{border-collapse:collapse}td,th{padding:2px 12px 2px 0;text-align:left;"
    "vertical-align:top}th{color:var(--dim);font-weight:400}td.n{text-align:right}"
    ".pics{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:14px}"
    ".pics figure{margin:0}.pics img{width:100%;aspect-ratio:1;object-fit:contain;border-radius:6px;"
    "background:var(--card)}.small "
    "img{image-rendering:pixelated}figcaption{font-size:13px;overflow-wrap:anywhere}"
    "summary{cursor:pointer}code{overflow-wrap:anywhere}";

void page_begin(struct cvy_text *page, const char *title) {
    cvy_text_printf(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>");
    page_text(page, title);
    cvy_text_printf(page,
                    "</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n<style>%s</style>"
                    "</head>\n<body>\n",
                    style);
}

void page_end(struct cvy_text *page) { cvy_text_printf(page, "</body></html>\n"); }

void page_text(struct cvy_text *page, const char *text) {
    struct cvy_text plain = {0};
    cvy_text_escape(&plain, text);
    for (const char *p = plain.data; p && *p; p++) {
        const char *entity = *p == '<'   ? "&lt;"
                             : *p == '>' ? "&gt;"
                             : *p == '&' ? "&amp;"
                             : *p == '"' ? "&quot;"
                                         : NULL;
        cvy_text_append(page, entity ? entity : p, entity ? strlen(entity) : 1);
    }
    page->status = page->status == CVY_OK ? plain.status : page->status;
    cvy_text_free(&plain);
}

/* RFC 4648. */
static void append_base64(struct cvy_text *page, const unsigned char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const size_t here = n - i < 3 ? n - i : 3;
        const unsigned group = (unsigned)bytes[i] << 16 | (here > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                               (here > 2 ? bytes[i + 2] : 0);
        char four[4];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= here ? digits[group >> (18 - 6 * k) & 63] : '=';
        cvy_text_append(page, four, 4);
    }
}

void page_image(struct cvy_text *page, const char *media, const void *bytes, size_t n_bytes,
                const char *alt) {
    cvy_text_printf(page, "<img alt=\"");
    page_text(page, alt);
    cvy_text_printf(page, "\" src=\"data:%s;base64,", media);
    append_base64(page, bytes, n_bytes);
    cvy_text_printf(page, "\">");
}
