/* The report as one page that works without a network: page.html, with the JSON report in the place
 * of its mark. The page is part of the program, so nothing has to be installed beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"

__asm__(".pushsection .rodata\n"
        "report_page:\n"
        ".incbin \"src/report/page.html\"\n"
        "report_page_end: .byte 0\n"
        ".popsection\n");
extern const char report_page[], report_page_end[];

int report_html(FILE *out, const struct analysis *a, const struct report_view *view)
{
	static const char mark[] = "@DATA@";
	const char *at = strstr(report_page, mark);

	if (!at)
		return -1;
	fwrite(report_page, 1, (size_t)(at - report_page), out);
	report_json(out, a, view);
	at += sizeof(mark) - 1;
	fwrite(at, 1, (size_t)(report_page_end - at), out);
	return 0;
}
