/* See known.h. Each row was looked up on 2026-11-30 at the page it names. Limits are those that
 * hold for all of a provider's operations: the shortest key, the longest memory. */
#include "policy/known.h"

#include <string.h>

#include "policy/matcher.h"

#define MINUTE (INT64_C(60) * 1000000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const struct known table[] = {
        {.host = "api.stripe.com",
         .pack = "stripe",
         .name = "Stripe",
         .key_max = 255,
         .key_ttl = 30 * DAY, /* of v2; v1: 24 h */
         .page = "https://docs.stripe.com/api/idempotent_requests"},
        {.host = "adyen.com",
         .pack = "adyen",
         .name = "Adyen",
         .key_max = 64,
         .page = "https://docs.adyen.com/development-resources/api-idempotency"},
        {.host = "adyenpayments.com",
         .pack = "adyen",
         .name = "Adyen",
         .key_max = 64,
         .page = "https://docs.adyen.com/development-resources/api-idempotency"},
        {.host = "paypal.com",
         .pack = "paypal",
         .name = "PayPal",
         .key_max = 78, /* payments v1; orders v2: 108 */
         .rotating = true,
         .page = "https://developer.paypal.com/reference/guidelines/idempotency"},
        {.host = "squareup.com",
         .pack = "square",
         .name = "Square",
         .key_max = 45,
         .page = "https://developer.squareup.com/docs/working-with-apis/idempotency"},
        {.host = "squareupsandbox.com",
         .pack = "square",
         .name = "Square",
         .key_max = 45,
         .page = "https://developer.squareup.com/docs/working-with-apis/idempotency"},
        {.host = "pay-api.amazon.com",
         .name = "Amazon Pay",
         .key_max = 32,
         .plain_key = true,
         .page = "https://developer.amazon.com/docs/amazon-pay-api-v2/idempotency.html"},
        {.host = "api.razorpay.com",
         .name = "Razorpay",
         .key_max = 36,
         .plain_key = true,
         .page = "https://razorpay.com/docs/api/payments/route/transfers/direct-transfer"
                 "s-idempotent-request"},
        {.host = "mangopay.com",
         .pack = "mangopay",
         .name = "Mangopay",
         .key_max = 36,
         .plain_key = true,
         .rotating = true,
         .key_ttl = DAY,
         .page = "https://docs.mangopay.com/guide/idempotency-support"},
        {.host = "checkout.com",
         .pack = "checkout",
         .name = "Checkout.com",
         .key_ttl = DAY,
         .page = "https://www.checkout.com/docs/payments/manage-payments/retry-a-payment"},
        {.host = "api.gocardless.com",
         .pack = "gocardless",
         .name = "GoCardless",
         .page = "https://gocardless.com/blog/idempotency-keys"},
        {.host = "api-sandbox.gocardless.com",
         .pack = "gocardless",
         .name = "GoCardless",
         .page = "https://gocardless.com/blog/idempotency-keys"},
        {.host = "myshopify.com",
         .pack = "shopify",
         .name = "Shopify",
         .key_ttl = DAY,
         .page = "https://shopify.dev/docs/api/usage/implementing-idempotency"},
        {.host = "api.telnyx.com",
         .name = "Telnyx",
         .key_max = 255,
         .plain_key = true,
         .key_ttl = DAY,
         .page = "https://developers.telnyx.com/docs/development/api-fundamentals/idempotency"},
        {.host = "qonto.com",
         .name = "Qonto",
         .key_ttl = 30 * MINUTE,
         .page = "https://docs.qonto.com/get-started/general/idempotent-requests"},
        {.host = "worldline-solutions.com",
         .name = "Worldline",
         .key_max = 40,
         .page = "https://docs.direct.worldline-solutions.com/integration/api-developer-"
                 "guide/idempotent-requests"},
        {.host = "plaid.com",
         .pack = "plaid",
         .name = "Plaid",
         .key_max = 50,
         .page = "https://www.rubydoc.info/gems/plaid/Plaid/TransferAuthorizationCreateRequest"},
        {.host = "api.resend.com",
         .pack = "resend",
         .name = "Resend",
         .key_max = 256,
         .key_ttl = DAY,
         .page = "https://resend.com/docs/dashboard/emails/idempotency-keys"},
        {.host = "api.brevo.com",
         .pack = "brevo",
         .name = "Brevo",
         .key_ttl = 30 * MINUTE, /* one page says 15 minutes */
         .page = "https://developers.brevo.com/docs/heterogenous-versions-batch-emails"},
        {.host = "communication.azure.com",
         .pack = "azure",
         .name = "Azure Communication Services",
         .uuid_only = true,
         .key_ttl = 5 * MINUTE,
         .page = "https://learn.microsoft.com/en-us/rest/api/communication/repeatable-requests"},
        {.host = "googleapis.com",
         .pack = "google",
         .name = "Google Cloud",
         .uuid_only = true,
         .rotating = true,
         .page = "https://google.aip.dev/155"},
        {.host = "api.twilio.com",
         .pack = "twilio",
         .name = "Twilio",
         .no_keys = true,
         .page = "https://www.twilio.com/docs/api/errors/20500"},
        {.host = "api.sendgrid.com",
         .pack = "sendgrid",
         .name = "SendGrid",
         .no_keys = true,
         .page = "https://www.twilio.com/docs/sendgrid/api-reference/mail-send"},
        {.host = "slack.com",
         .pack = "slack",
         .name = "Slack",
         .no_keys = true,
         .page = "https://docs.slack.dev/apis/web-api/rate-limits"},
        {.host = "api.github.com",
         .pack = "github",
         .name = "GitHub",
         .no_keys = true,
         .page = "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api"},
        {.host = "gitlab.com",
         .pack = "gitlab",
         .name = "GitLab",
         .no_keys = true,
         .page = "https://gitlab.com/gitlab-org/gitlab/-/issues/356008"},
        {.host = "atlassian.net",
         .pack = "jira",
         .name = "Jira",
         .no_keys = true,
         .page = "https://developer.atlassian.com/server/jira/platform/jira-rest-api-exa"
                 "mple-create-issue-7897248"},
};

static bool is_below(struct span host, const char *parent)
{
	size_t n = strlen(parent);

	if (host.n < n || !span_ends_nocase(host, parent))
		return false;
	return host.n == n || host.p[host.n - n - 1] == '.';
}

const struct known *known_host(struct span host)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (is_below(host, table[i].host))
			return &table[i];
	return NULL;
}

const struct known *known_provider(const struct rule *rule)
{
	const struct matcher *m = rule->matcher;

	return m->host_kind == HOST_LABELS ? known_host(m->host) : NULL;
}

int known_key_length(enum key_format format)
{
	switch (format) {
	case FORMAT_UUID:
		return 36;
	case FORMAT_UUID_NODASH:
		return 32;
	case FORMAT_SF_STRING:
		return 38;
	case FORMAT_HEX:
		break;
	}
	return 64;
}
