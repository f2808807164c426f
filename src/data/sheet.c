/* See sheet.h. Letters are 3x5 pixels, drawn twice as large: enough for names of classes, and no font to install. */
#include "data/sheet.h"

#include <ctype.h>
#include <string.h>

enum {
    MARGIN = 4,
    SMALLEST = 96, /* pictures are enlarged to about this */
    DOT = 2,
    LETTER_WIDTH = 4 * DOT, /* with the gap behind it */
    LABEL = 7 * DOT,
};

/* Five rows from above, three dots each: octal digits, 4 is the left dot, 1 the right one. */
static const struct glyph {
    char letter;
    uint16_t dots;
} glyphs[] = {
    {'A', 025755}, {'B', 065656}, {'C', 034443},  {'D', 065556}, {'E', 074647}, {'F', 074644}, {'G', 034553},
    {'H', 055755}, {'I', 072227}, {'J', 011152},  {'K', 055655}, {'L', 044447}, {'M', 057755}, {'N', 065555},
    {'O', 025552}, {'P', 065644}, {'Q', 025563},  {'R', 065655}, {'S', 034216}, {'T', 072222}, {'U', 055557},
    {'V', 055552}, {'W', 055775}, {'X', 055255},  {'Y', 055222}, {'Z', 071247}, {'0', 075557}, {'1', 026227},
    {'2', 061247}, {'3', 061216}, {'4', 055711},  {'5', 074616}, {'6', 034652}, {'7', 071222}, {'8', 075757},
    {'9', 025316}, {'-', 000700}, {'_', 000007},  {'.', 000002}, {',', 000024}, {':', 002020}, {'/', 011244},
    {'(', 012221}, {')', 042224}, {'\'', 022000}, {'+', 002720}, {'%', 051245}, {' ', 000000}, {'&', 025253},
};

static uint16_t dots_of(char letter) {
    for (size_t i = 0; i < sizeof glyphs / sizeof *glyphs; i++) {
        if (glyphs[i].letter == toupper((unsigned char)letter))
            return glyphs[i].dots;
    }
    return 075557;
}

static int64_t cell_height(const struct cvy_sheet *s) { return s->height * s->scale + LABEL + MARGIN; }
static int64_t cell_width(const struct cvy_sheet *s) { return s->width * s->scale + MARGIN; }

cvy_status cvy_sheet_new(int64_t n, int64_t columns, int64_t height, int64_t width, struct cvy_sheet *out) {
    const int64_t longer = height > width ? height : width;
    struct cvy_sheet sheet = {.columns = columns < n ? columns : n,
                              .height = height,
                              .width = width,
                              .scale = longer < SMALLEST ? (SMALLEST + longer - 1) / longer : 1};
    const int64_t rows = (n + sheet.columns - 1) / sheet.columns;
    CVY_TRY(cvy_image_reshape(&sheet.image, 3, rows * cell_height(&sheet) + MARGIN,
                              sheet.columns * cell_width(&sheet) + MARGIN, CVY_U8, CVY_NHWC));
    memset(sheet.image.pixels, 255, (size_t)(3 * sheet.image.height * sheet.image.width));
    *out = sheet;
    return CVY_OK;
}

static uint8_t *pixel(const struct cvy_sheet *s, int64_t y, int64_t x) {
    return (uint8_t *)s->image.pixels + 3 * (y * s->image.width + x);
}

static void draw_letter(struct cvy_sheet *s, int64_t top, int64_t left, char letter) {
    const uint16_t dots = dots_of(letter);
    for (int i = 0; i < 5 * DOT; i++) {
        for (int j = 0; j < 3 * DOT; j++) {
            if (dots >> (14 - i / DOT * 3 - j / DOT) & 1)
                memset(pixel(s, top + i, left + j), 0, 3);
        }
    }
}

void cvy_sheet_put(struct cvy_sheet *s, int64_t k, const uint8_t *rgb, const char *name) {
    const int64_t top = MARGIN + k / s->columns * cell_height(s),
                  left = MARGIN + k % s->columns * cell_width(s);
    for (int64_t y = 0; y < s->height * s->scale; y++) {
        for (int64_t x = 0; x < s->width * s->scale; x++)
            memcpy(pixel(s, top + y, left + x), rgb + 3 * (y / s->scale * s->width + x / s->scale), 3);
    }
    const int64_t line = top + s->height * s->scale + DOT, room = s->width * s->scale / LETTER_WIDTH;
    for (int64_t i = 0; i < room && name[i]; i++)
        draw_letter(s, line, left + i * LETTER_WIDTH, name[i]);
}
