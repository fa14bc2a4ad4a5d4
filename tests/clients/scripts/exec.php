<?php
/* One write by ext/curl. Arguments: URL, seconds, user:password or nothing, body, fields|form|upload, a file with the body. */
[, $url, $seconds, $user, $body, $kind, $file] = $argv;
$curl = curl_init($url);
curl_setopt_array($curl, [
	CURLOPT_RETURNTRANSFER => true, CURLOPT_FOLLOWLOCATION => true, CURLOPT_ENCODING => '',
	CURLOPT_TIMEOUT => (int) $seconds,
]);
if ($kind === 'fields')
	curl_setopt_array($curl, [CURLOPT_POSTFIELDS => $body, CURLOPT_HTTPHEADER => ['Content-Type: application/json']]);
if ($kind === 'form')
	curl_setopt($curl, CURLOPT_POSTFIELDS, ['note' => 'hello', 'order' => new CURLFile($file, 'application/json', 'order.json')]);
if ($kind === 'upload')
	curl_setopt_array($curl, [CURLOPT_PUT => true, CURLOPT_INFILE => fopen($file, 'r'), CURLOPT_INFILESIZE => strlen($body)]);
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
