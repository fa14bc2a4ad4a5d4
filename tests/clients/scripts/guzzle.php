<?php
/* One write by Guzzle, which follows redirects by itself. Arguments: URL, seconds, user:password or nothing, body. */
require '/usr/share/php/GuzzleHttp/autoload.php';
[, $url, $seconds, $user, $body] = $argv;
$options = ['timeout' => (float) $seconds, 'json' => json_decode($body)];
if ($user !== '')
	$options['auth'] = explode(':', $user);
$http = new GuzzleHttp\Client();
try {
	$answer = $http->request('POST', $url, $options);
} catch (GuzzleHttp\Exception\BadResponseException $refused) {
	$answer = $refused->getResponse();
} catch (GuzzleHttp\Exception\TransferException $lost) {
	fwrite(STDERR, get_class($lost) . ': ' . $lost->getMessage() . "\n");
	printf("\nsaw status=0 code=%d\n", $lost->getHandlerContext()['errno'] ?? -1);
	exit(1);
}
printf("%s\nsaw status=%d code=0\n", $answer->getBody(), $answer->getStatusCode());
exit($answer->getStatusCode() >= 400 ? 22 : 0);
