<?php
/* One write by Guzzle, which follows redirects by itself. Arguments: URL, seconds, user:password or nothing, body,
 * fields|form|stream|async. */
require '/usr/share/php/GuzzleHttp/autoload.php';
[, $url, $seconds, $user, $body, $kind] = $argv;
$options = ['timeout' => (float) $seconds] + [
	'fields' => ['json' => json_decode($body)],
	'async' => ['json' => json_decode($body)], // by curl_multi
	'form' => ['multipart' => [['name' => 'note', 'contents' => 'hello'], ['name' => 'order', 'contents' => $body]]],
	// of unknown size: Guzzle hands it to libcurl by a read callback
	'stream' => ['body' => GuzzleHttp\Psr7\FnStream::decorate(GuzzleHttp\Psr7\Utils::streamFor($body), ['getSize' => fn () => null])],
][$kind];
if ($user !== '')
	$options['auth'] = explode(':', $user);
$http = new GuzzleHttp\Client();
try {
	$answer = $kind === 'async' ? $http->requestAsync('POST', $url, $options)->wait() : $http->request('POST', $url, $options);
} catch (GuzzleHttp\Exception\BadResponseException $refused) {
	$answer = $refused->getResponse();
} catch (GuzzleHttp\Exception\TransferException $lost) {
	fwrite(STDERR, get_class($lost) . ': ' . $lost->getMessage() . "\n");
	printf("\nsaw status=0 code=%d\n", $lost->getHandlerContext()['errno'] ?? -1);
	exit(1);
}
printf("%s\nsaw status=%d code=0\n", $answer->getBody(), $answer->getStatusCode());
exit($answer->getStatusCode() >= 400 ? 22 : 0);
