/* Every reason to refuse a file, each with a text that names it; and what an open one leaves
 * behind.
 *
 * The source is included so that the file system's type can be made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <sys/vfs.h>

static unsigned long faked_type;

static int fake_fstatfs(int fd, struct statfs *out)
{
	int rc = fstatfs(fd, out);

	if (faked_type)
		out->f_type = (__typeof__(out->f_type))faked_type;
	return rc;
}

#include <sys/mman.h>

static bool disk_fails;

static int fake_msync(void *at, size_t n, int flags)
{
	return disk_fails ? -1 : msync(at, n, flags);
}
#define fstatfs fake_fstatfs
#define msync   fake_msync
#include "../../src/ledger/file.c"
#undef fstatfs
#undef msync

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char folder[] = "/tmp/sendonce-open-XXXXXX";
static char path[64], other[64];
static struct ledger_error error;

static int try_open(const char *name, bool create)
{
	struct ledger_options o = {
	        .path = name, .size = 256 * 1024, .max_response = 1024, .create = create};
	struct ledger *l = NULL;
	int rc = ledger_open(&o, &l, &error);

	if (rc == LEDGER_OK)
		ledger_close(l);
	else
		assert_null(l);
	return rc;
}

/* A good ledger at `path`. */
static int set_up(void **state)
{
	(void)state;
	faked_type = 0;
	unlink(path);
	unlink(other);
	chmod(folder, 0700);
	return try_open(path, true);
}

static void refused(int want, const char *word)
{
	assert_int_equal(try_open(path, true), want);
	if (!strstr(error.text, word))
		fail_msg("\"%s\" does not say \"%s\"", error.text, word);
	assert_non_null(strstr(error.text, path));
}

static void overwrite(const char *name, long at, const void *data, size_t n)
{
	int fd = open(name, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, n, at), n);
	close(fd);
}

static void good_one_opens_and_is_private(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(try_open(path, false), LEDGER_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 256 * 1024);
	assert_true(st.st_blocks * 512 >= st.st_size);
	assert_int_equal(st.st_nlink, 1);
}

static void secrets_differ(void **state)
{
	struct ledger_options o = {.path = path, .size = 256 * 1024, .create = true};
	struct ledger *a, *b;

	(void)state;
	assert_int_equal(ledger_open(&o, &a, &error), LEDGER_OK);
	o.path = other;
	assert_int_equal(ledger_open(&o, &b, &error), LEDGER_OK);
	assert_memory_not_equal(ledger_secret(a), ledger_secret(b), LEDGER_SECRET);
	assert_string_equal(ledger_path(b), other);
	assert_null(ledger_warning(a));
	ledger_close(a);
	ledger_close(b);
}

static void symbolic_link(void **state)
{
	(void)state;
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	refused(LEDGER_CANNOT, "symbolic link");
}

static void hard_link(void **state)
{
	(void)state;
	assert_int_equal(link(path, other), 0);
	refused(LEDGER_CANNOT, "hard links");
}

static void mode(void **state)
{
	(void)state;
	chmod(path, 0640);
	refused(LEDGER_CANNOT, "chmod 600");
	chmod(path, 0602);
	refused(LEDGER_CANNOT, "chmod 600");
}

static void not_a_regular_file(void **state)
{
	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(LEDGER_FOREIGN, "regular file");
}

static void other_user(void **state)
{
	struct ledger_options o = {.path = "/etc/passwd", .read_only = true};
	struct ledger *l;

	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		refused(LEDGER_CANNOT, "belongs to user 12345");
		return;
	}
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_CANNOT);
	assert_non_null(strstr(error.text, "belongs to user 0"));
}

static void foreign_and_empty(void **state)
{
	(void)state;
	overwrite(path, 0, "SQLite format 3", 16);
	refused(LEDGER_FOREIGN, "not a sendonce ledger");
	assert_int_equal(truncate(path, 0), 0);
	refused(LEDGER_FOREIGN, "not a sendonce ledger");
	assert_int_equal(truncate(path, 256 * 1024), 0);
	refused(LEDGER_FOREIGN, "not a sendonce ledger");
}

static void cut_or_grown(void **state)
{
	static const long sizes[] = {100, 4096, 8192, 256 * 1024 - 4096, 256 * 1024 + 1};

	(void)state;
	for (int i = 4; i >= 0; i--) {
		assert_int_equal(truncate(path, sizes[i]), 0);
		assert_int_equal(try_open(path, true), LEDGER_FOREIGN);
	}
}

static void other_version(void **state)
{
	uint32_t word = LAYOUT_VERSION + 1;

	(void)state;
	overwrite(path, offsetof(struct layout_fixed, layout), &word, 4);
	refused(LEDGER_FOREIGN, "another version");
	word = LAYOUT_VERSION;
	overwrite(path, offsetof(struct layout_fixed, layout), &word, 4);
	assert_int_equal(try_open(path, false), LEDGER_OK);
	word = 1;
	overwrite(path, offsetof(struct layout_fixed, incompatible), &word, 4);
	refused(LEDGER_FOREIGN, "another version");
}

static void damaged_header(void **state)
{
	(void)state;
	overwrite(path, offsetof(struct layout_fixed, secret), "x", 1);
	refused(LEDGER_FOREIGN, "damaged");
}

/* A sum can be recomputed by whoever writes the file; bounds still are our own. */
static void hostile_layout(void **state)
{
	struct layout_fixed f;
	int fd = open(path, O_RDWR);

	(void)state;
	assert_int_equal(pread(fd, &f, sizeof(f), 0), sizeof(f));
	f.record_count *= 1000;
	f.sum = sum_bytes(0, &f, offsetof(struct layout_fixed, sum));
	assert_int_equal(pwrite(fd, &f, sizeof(f), 0), sizeof(f));
	close(fd);
	refused(LEDGER_FOREIGN, "layout");
}

static void bad_paths(void **state)
{
	(void)state;
	assert_int_equal(try_open("relative/ledger", true), LEDGER_CANNOT);
	assert_non_null(strstr(error.text, "absolute"));
	assert_int_equal(try_open("", true), LEDGER_CANNOT);
	assert_int_equal(try_open(NULL, true), LEDGER_CANNOT);
	assert_int_equal(try_open("/nonexistent/folder/ledger", true), LEDGER_CANNOT);
	assert_non_null(strstr(error.text, "/nonexistent/folder"));
	assert_int_equal(try_open("/proc/sendonce-ledger", true), LEDGER_CANNOT);
	assert_int_equal(try_open(folder, true), LEDGER_CANNOT);
	unlink(path);
	assert_int_equal(try_open(path, false), LEDGER_CANNOT);
	assert_non_null(strstr(error.text, "does not exist"));
}

static void folder_everybody_may_write(void **state)
{
	(void)state;
	chmod(folder, 0777);
	refused(LEDGER_CANNOT, "chmod o-w");
	chmod(folder, 01777);
	assert_int_equal(try_open(path, true), LEDGER_OK);
	chmod(folder, 0700);
}

static void network_file_systems(void **state)
{
	static const struct {
		unsigned long type;
		const char *name;
	} table[] = {{0x6969, "NFS"}, {0x01021997, "9p"}, {0x6a656a63, "virtiofs"}};
	struct ledger_options o = {.path = path, .size = 256 * 1024};
	struct ledger *l;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		faked_type = table[i].type;
		refused(LEDGER_CANNOT, table[i].name);
	}
	faked_type = 0x65735546;
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	assert_non_null(strstr(ledger_warning(l), "FUSE"));
	ledger_close(l);
}

/* As an ordinary user: root may write anywhere. */
static int as_nobody(int (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(100);
		_exit(body());
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int read_only_file(void)
{
	struct ledger_options o = {.path = other, .size = 256 * 1024, .create = true};
	struct ledger *l;
	uint8_t hash[32] = {0};
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .generation = 1};
	struct hold hold;

	if (ledger_open(&o, &l, &error) != LEDGER_OK)
		return 1;
	ledger_close(l);
	chmod(other, 0400);
	if (ledger_open(&o, &l, &error) != LEDGER_CANNOT || !strstr(error.text, "writable"))
		return 2;
	o.read_only = true;
	if (ledger_open(&o, &l, &error) != LEDGER_OK)
		return 3;
	ledger_count(l, COUNT_replayed);
	return ledger_reserve(l, &rec, NULL, clock_now(), &hold) == LEDGER_CANNOT ? 0 : 4;
}

static int read_only_folder(void)
{
	return try_open(path, true) == LEDGER_CANNOT && strstr(error.text, "writable") ? 0 : 1;
}

static void read_only_places(void **state)
{
	(void)state;
	chmod(folder, 01777);
	assert_int_equal(as_nobody(read_only_file), 0);
	unlink(path);
	unlink(other);
	chmod(folder, 0755);
	if (geteuid() != 0)
		chmod(folder, 0555);
	assert_int_equal(as_nobody(read_only_folder), 0);
	chmod(folder, 0700);
}

static void sizes(void **state)
{
	static const int64_t table[] = {-1, 0, 4096, 255 * 1024, INT64_MAX};
	struct ledger_options o = {.path = other, .create = true};
	struct ledger *l;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		o.size = table[i];
		assert_int_equal(ledger_open(&o, &l, &error), LEDGER_CANNOT);
		assert_non_null(strstr(error.text, "ledger.size"));
	}
	o.size = 300001; /* used at creation only, in whole pages */
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	ledger_close(l);
	assert_int_equal(try_open(other, true), LEDGER_OK);
}

static void folders_are_made_when_asked(void **state)
{
	char deep[128], part[128];
	struct ledger_options o = {
	        .path = deep, .size = 256 * 1024, .create = true, .make_folder = true};
	struct ledger *l;
	struct stat st;

	(void)state;
	snprintf(deep, sizeof(deep), "%s/a/b/ledger", folder);
	snprintf(part, sizeof(part), "%s/a/b", folder);
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	ledger_close(l);
	assert_int_equal(stat(part, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	unlink(deep);
	rmdir(part);
	snprintf(part, sizeof(part), "%s/a", folder);
	rmdir(part);
}

static int count_files(void)
{
	char command[128];
	FILE *f;
	int n = -1;

	snprintf(command, sizeof(command), "ls %s | wc -l", folder);
	f = popen(command, "r");
	if (f && fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		pclose(f);
	return n;
}

static void many_make_one(void **state)
{
	int status, bad = 0;

	(void)state;
	unlink(path);
	for (int i = 0; i < 12; i++) {
		if (fork() == 0)
			_exit(try_open(path, true) == LEDGER_OK ? 0 : 1);
	}
	while (wait(&status) > 0)
		bad += status != 0;
	assert_int_equal(bad, 0);
	assert_int_equal(count_files(), 1);
}

static int closed_streams(void)
{
	struct ledger_options o = {.path = path, .size = 256 * 1024, .create = true};
	struct ledger *l;

	for (int fd = 0; fd < 64; fd++)
		close(fd);
	errno = 4242;
	if (ledger_open(&o, &l, &error) != LEDGER_OK || errno != 4242)
		return 1;
	for (int fd = 0; fd < 64; fd++) {
		if (fcntl(fd, F_GETFD) != -1)
			return 2;
	}
	return 0;
}

static void no_descriptor_is_kept(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	for (int made = 0; made < 2; made++) {
		pid = fork();
		if (pid == 0)
			_exit(closed_streams());
		waitpid(pid, &status, 0);
		assert_int_equal(status, 0);
		unlink(path);
	}
}

static void full_disk_is_an_error(void **state)
{
	struct ledger_options o = {.path = other, .size = INT64_C(1) << 36, .create = true};
	struct ledger *l;
	struct statfs fs;

	(void)state;
	assert_int_equal(statfs(folder, &fs), 0);
	if ((uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize > (uint64_t)o.size)
		return; /* this disk really has that room: nothing can be learnt here */
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_CANNOT);
	assert_non_null(strstr(error.text, "free some space"));
	assert_int_equal(count_files(), 1);
}

/* What cannot be written down does not leave. */
static void gate_stays_shut_when_the_disk_fails(void **state)
{
	struct ledger_options o = {.path = path, .durable = true};
	struct ledger *l;
	uint8_t hash[32] = {1};
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .generation = 1};
	struct hold hold;
	struct record_view view;

	(void)state;
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	assert_int_equal(ledger_reserve(l, &rec, NULL, clock_now(), &hold), LEDGER_OK);
	disk_fails = true;
	assert_int_equal(ledger_gate(l, &hold, clock_now()), LEDGER_CANNOT);
	disk_fails = false;
	assert_int_equal(ledger_look(l, hold.id, clock_now(), &view), LEDGER_OK);
	assert_int_equal(view.state, REC_RESERVED);
	assert_false(view.ever_sent);
	assert_int_equal(view.first_sent.wall_us, 0);
	assert_int_equal(ledger_gate(l, &hold, clock_now()), LEDGER_OK);
	ledger_close(l);
}

static int names_in_folder(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2;
}

static void limit_of_file_sizes_is_an_error(void **state)
{
	struct rlimit little = {4096, RLIM_INFINITY};
	int status;

	(void)state;
	unlink(path);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_FSIZE, &little);
		_exit(try_open(path, true) != LEDGER_CANNOT ||
		      !strstr(error.text, "File too large"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(names_in_folder(), 0);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(good_one_opens_and_is_private),
	        CASE(secrets_differ),
	        CASE(symbolic_link),
	        CASE(hard_link),
	        CASE(mode),
	        CASE(not_a_regular_file),
	        CASE(other_user),
	        CASE(foreign_and_empty),
	        CASE(cut_or_grown),
	        CASE(other_version),
	        CASE(damaged_header),
	        CASE(hostile_layout),
	        CASE(bad_paths),
	        CASE(folder_everybody_may_write),
	        CASE(network_file_systems),
	        CASE(read_only_places),
	        CASE(sizes),
	        CASE(folders_are_made_when_asked),
	        CASE(many_make_one),
	        CASE(no_descriptor_is_kept),
	        CASE(full_disk_is_an_error),
	        CASE(gate_stays_shut_when_the_disk_fails),
	        CASE(limit_of_file_sizes_is_an_error),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(other);
	rmdir(folder);
	return failed;
}
