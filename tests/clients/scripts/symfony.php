<?php
/* One write by Symfony's CurlHttpClient. It gives no CURLcode away: the text tells. Arguments: URL, seconds, user:password
 * or nothing, body. */
require '/usr/share/php/Symfony/Component/HttpClient/autoload.php';
use Symfony\Component\HttpClient\CurlHttpClient;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;
[, $url, $seconds, $user, $body] = $argv;
$texts = ['Empty reply' => 52, 'Timeout was reached' => 28, 'timed out' => 28, 'outstanding read data remaining' => 18, 'bytes remaining' => 18, 'bytes missing' => 18, 'Sendonce' => 56, 'Failure when receiving' => 56];
$options = ['max_duration' => (float) $seconds, 'body' => $body, 'headers' => ['Content-Type' => 'application/json']];
if ($user !== '')
	$options['auth_basic'] = $user;
$http = new CurlHttpClient();
try {
	$answer = $http->request('POST', $url, $options);
	printf("%s\nsaw status=%d code=0\n", $answer->getContent(false), $answer->getStatusCode());
	exit($answer->getStatusCode() >= 400 ? 22 : 0);
} catch (TransportExceptionInterface $lost) {
	fwrite(STDERR, $lost->getMessage() . "\n");
	$found = array_filter($texts, fn ($text) => str_contains($lost->getMessage(), $text), ARRAY_FILTER_USE_KEY);
	printf("\nsaw status=0 code=%d\n", reset($found) ?: 999);
	exit(1);
}
