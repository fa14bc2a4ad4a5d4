<?php
/* One write by curl_multi, which is left with its handle inside at the end. Arguments: URL, seconds, user:password or
 * nothing, body. */
[, $url, $seconds, $user, $body] = $argv;
$multi = curl_multi_init();
$curl = curl_init($url);
curl_setopt_array($curl, [
	CURLOPT_RETURNTRANSFER => true, CURLOPT_FOLLOWLOCATION => true, CURLOPT_ENCODING => '', CURLOPT_TIMEOUT => (int) $seconds,
	CURLOPT_CUSTOMREQUEST => 'PUT', CURLOPT_POSTFIELDS => $body, CURLOPT_HTTPHEADER => ['Content-Type: application/json'],
]);
if ($user !== '')
	curl_setopt($curl, CURLOPT_USERPWD, $user);
curl_multi_add_handle($multi, $curl);
do {
	$ended = curl_multi_exec($multi, $running);
	if ($running)
		curl_multi_select($multi, 1.0);
} while ($running && $ended === CURLM_OK);
$code = curl_multi_info_read($multi, $left)['result'] ?? -1;
if ($left !== 0)
	$code = -2;
if ($code)
	fwrite(STDERR, curl_error($curl) . "\n");
$status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
printf("%s\nsaw status=%d code=%d\n", curl_multi_getcontent($curl), $status, $code);
exit($code ? 1 : ($status >= 400 ? 22 : 0));
