/* The options of every command, parsed from one table by one loop.
 *
 * A command says what its options are called and where each value goes; --help and -h are added,
 * and every error has the same words. What options mean together is the command's to check.
 * getopt_long does the walking, so options and operands may be mixed unless the command says that
 * its first operand ends the options. */
#include "cli/cli.h"

#include <getopt.h>
#include <string.h>

enum { OPTIONS_MAX = 32, FIRST = 0x100 };

static int argument_of(enum cli_kind kind)
{
	if (kind == CLI_FLAG)
		return no_argument;
	return kind == CLI_MAYBE || kind == CLI_LATER ? optional_argument : required_argument;
}

static int apply(const char *command, const struct cli_option *o, const char *value)
{
	switch (o->kind) {
	case CLI_FLAG:
		*(bool *)o->at = true;
		return 0;
	case CLI_TEXT:
	case CLI_MAYBE:
		*(const char **)o->at = value ? value : "";
		return 0;
	case CLI_ENV:
		return cli_set_env(o->env, value) ? CLI_CANNOT : 0;
	case CLI_PATH:
		return cli_set_path(o->env, value) ? CLI_CANNOT : 0;
	case CLI_CALL:
		return o->call(o->at, value);
	case CLI_LATER:
		break;
	}
	return cli_usage(command, "--%s is not supported in this version", o->name);
}

int cli_parse(const struct cli_syntax *syntax, int argc, char **argv, bool *done)
{
	struct option list[OPTIONS_MAX] = {{"help", no_argument, NULL, 'h'}};
	const struct cli_option *all = syntax->options;
	int option, rc = 0;

	for (int i = 0; all[i].name && i < OPTIONS_MAX - 2; i++)
		list[i + 1] =
		        (struct option){all[i].name, argument_of(all[i].kind), NULL, FIRST + i};
	*done = false;
	optind = 0; /* the command line was already walked once, up to the command's name */
	opterr = 0;
	while (rc == 0 && (option = getopt_long(argc, argv, syntax->stop_at_operand ? "+:h" : ":h",
	                                        list, NULL)) != -1) {
		if (option == 'h') {
			fputs(syntax->help, stdout);
			*done = true;
			return 0;
		}
		if (option < FIRST)
			return cli_usage(syntax->command, "%s %s",
			                 option == ':' ? "a value is missing after"
			                               : "unknown option",
			                 argv[optind - 1]);
		rc = apply(syntax->command, &all[option - FIRST], optarg);
	}
	return rc;
}

int cli_parse_common(const char *command, const char *help, int argc, char **argv,
                     struct cli_common *out)
{
	const struct cli_option options[] = {CLI_PLACE_OPTIONS(&out->json), {0}};
	const struct cli_syntax syntax = {.command = command, .help = help, .options = options};

	*out = (struct cli_common){false, false};
	return cli_parse(&syntax, argc, argv, &out->done);
}
