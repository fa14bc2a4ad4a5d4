/* What of an unlisted path may be written down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fold.h"

static const struct {
	const char *path, *folded;
} table[] = {
        {"/", "/"},
        {"", ""},
        {"/v1/orders", "/v1/orders"},
        {"/v1/orders/", "/v1/orders/"},
        {"//a//", "//a//"},
        /* numbers */
        {"/orders/7", "/orders/{id}"},
        {"/orders/12345678901234567890", "/orders/{id}"},
        {"/orders/7/refund", "/orders/{id}/refund"},
        /* UUIDs, either case; one character off is a secret */
        {"/o/123e4567-e89b-12d3-a456-426614174000", "/o/{id}"},
        {"/o/123E4567-E89B-12D3-A456-426614174000/x", "/o/{id}/x"},
        {"/o/123e4567-e89b-12d3-a456-42661417400g", "/o/{secret}"},
        {"/o/abcdefab-abcd-abcd-abcd-abcdefabcdef", "/o/{id}"},
        /* ids with letters */
        {"/o/ord_1234", "/o/{id}"},
        {"/o/2024-01-31", "/o/{id}"},
        {"/o/ord_123", "/o/ord_123"},
        {"/oauth2/v3/mp3", "/oauth2/v3/mp3"},
        /* sixteen or more, mixed */
        {"/hook/T00000000/B00000000/XXXXXXXXXXXXXXXX1", "/hook/{id}/{id}/{secret}"},
        {"/bot123456:AAE-abcdefghijklmnop/sendMessage", "/{secret}/sendMessage"},
        {"/t/abcdefghijklmno1", "/t/{secret}"},
        {"/t/abcdefghijklmn1", "/t/abcdefghijklmn1"},
        {"/t/AbcdefghijklmnoP", "/t/{secret}"},
        {"/t/0123456789abcdef0123456789abcdef", "/t/{secret}"},
        /* long words of one kind are words */
        {"/internationalization/configurations-of-it",
         "/internationalization/configurations-of-it"},
        {"/ABCDEFGHIJKLMNOPQRSTU", "/ABCDEFGHIJKLMNOPQRSTU"},
        /* never a query */
        {"/o?token=abc", "/o"},
        {"/o/?x=/7", "/o/"},
        {"?x", ""},
        {"/o/7?x", "/o/{id}"},
        /* percent-encoded bytes are what they are written with */
        {"/a%20b", "/a%20b"},
        {"/a%20b%20c", "/{id}"},
};

static void paths_are_folded(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct buf out = {0};

		fold_path(span_of(table[i].path), &out);
		assert_string_equal(out.data ? out.data : "", table[i].folded);
		buf_free(&out);
	}
}

static void bytes_beyond_the_span_are_not_read(void **state)
{
	struct buf out = {0};

	(void)state;
	fold_path((struct span){"/o/77/secret", 5}, &out);
	assert_string_equal(out.data, "/o/{id}");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(paths_are_folded),
	        cmocka_unit_test(bytes_beyond_the_span_are_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
