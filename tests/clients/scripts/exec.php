<?php
/* One write by ext/curl. Arguments: URL, seconds, user:password or nothing, body. */
[, $url, $seconds, $user, $body] = $argv;
$curl = curl_init($url);
curl_setopt_array($curl, [
	CURLOPT_POST => true, CURLOPT_POSTFIELDS => $body, CURLOPT_HTTPHEADER => ['Content-Type: application/json'],
	CURLOPT_RETURNTRANSFER => true, CURLOPT_FOLLOWLOCATION => true, CURLOPT_ENCODING => '',
	CURLOPT_TIMEOUT => (int) $seconds,
]);
if ($user !== '')
	curl_setopt($curl, CURLOPT_USERPWD, $user);
$answer = curl_exec($curl);
$status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
if ($answer === false) {
	fwrite(STDERR, curl_error($curl) . "\n");
	printf("\nsaw status=%d code=%d\n", $status, curl_errno($curl));
	exit(1);
}
printf("%s\nsaw status=%d code=0\n", $answer, $status);
exit($status >= 400 ? 22 : 0);
