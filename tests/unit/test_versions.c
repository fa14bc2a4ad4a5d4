/* What is told by a libcurl's number. libcurl is a script here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/curlapi.h"
#include "intercept/versions.h"

static unsigned number;

static curl_version_info_data *fake_version_info(CURLversion age)
{
	static curl_version_info_data info;

	assert_int_equal(age, CURLVERSION_FIRST);
	info.version_num = number;
	return &info;
}

static void fake_notify_enable(void)
{
}

static void told_by_its_number(void **state)
{
	static const struct {
		unsigned number;
		bool refuses_upkeep, measures_anew, ticks_late;
	} rows[] = {
	        {0x073d00, false, false, false}, {0x075801, false, false, false},
	        {0x080901, false, false, false}, {0x080a00, true, false, false},
	        {0x080e01, true, false, false},  {0x081100, true, false, false},
	        {0x081200, true, true, false},   {0x081300, true, true, false},
	        {0x081400, true, true, true},    {0x081500, true, true, true},
	        {0x090000, true, true, true},
	};
	static struct flavour fl;

	(void)state;
	fl.fn[FN_version_info] = (void (*)(void))fake_version_info;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		number = rows[i].number;
		fl.fn[FN_multi_notify_enable] = number >= 0x081100 ? fake_notify_enable : NULL;
		assert_int_equal(versions_refuse_upkeep(&fl), rows[i].refuses_upkeep);
		assert_int_equal(versions_measure_anew(&fl), rows[i].measures_anew);
		assert_int_equal(versions_tick_late(&fl), rows[i].ticks_late);
	}
}

static void nobody_to_ask(void **state)
{
	static struct flavour fl;

	(void)state;
	assert_false(versions_refuse_upkeep(&fl));
	assert_false(versions_measure_anew(&fl));
	assert_false(versions_tick_late(&fl));
	fl.fn[FN_multi_notify_enable] = fake_notify_enable;
	assert_false(versions_tick_late(&fl));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(told_by_its_number),
	        cmocka_unit_test(nobody_to_ask),
	};
	return cmocka_run_group_tests_name("versions", tests, NULL, NULL);
}
