/* What the parts of report.html are made of: text of HTML, charts as inline SVG, pictures as data. Colours are CSS
   variables, so that one page is right in light and in dark. */
#ifndef CVY_CLI_REPORT_PAGE_H
#define CVY_CLI_REPORT_PAGE_H

#include "base/text.h"
#include "base/vec.h"

/* Up to </head><body>: styles; everything that may stand in <title>. */
void page_begin(struct cvy_text *page, const char *title);
void page_end(struct cvy_text *page);

/* A text from outside as text of HTML: printable UTF-8, and nothing of it is markup. */
void page_text(struct cvy_text *page, const char *text);
/* <img> with the file's bytes inside. `media` is "image/png", say. */
void page_image(struct cvy_text *page, const char *media, const void *bytes, size_t n_bytes, const char *alt);

struct page_point {
    double x, y;
};

struct page_series {
    const char *name;
    bool is_marked; /* each point is a dot as well */
    CVY_VEC(struct page_point) points;
};

/* A point; one that does not lie behind the last takes the place of all that it does not lie behind, as a run that goes
   on from a checkpoint writes some steps again. */
cvy_status page_series_add(struct page_series *series, double x, double y);
/* At most so many points: means of neighbours. */
void page_series_thin(struct page_series *series, size_t most);

struct page_chart {
    const char *title, *unit; /* of y; "" : none */
    const char *x_name;
    struct page_series *series;
    size_t n;
};
/* Nothing when there is no point. */
void page_chart(struct cvy_text *page, const struct page_chart *chart);

#endif
