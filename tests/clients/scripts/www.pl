# One write by WWW::Curl. Arguments: URL, seconds, user:password or nothing, body, fields|form.
use strict;
use warnings;
use WWW::Curl::Easy;
use WWW::Curl::Form;

my ($url, $seconds, $user, $body, $kind) = @ARGV;
my $answer = '';
my $curl = WWW::Curl::Easy->new;
$curl->setopt(CURLOPT_URL, $url);
my $form = WWW::Curl::Form->new;
if ($kind eq 'form') {
	$form->formadd('note', 'hello');
	$form->formadd('order', $body);
	$curl->setopt(CURLOPT_HTTPPOST, $form);
} else {
	$curl->setopt(CURLOPT_POST, 1);
	$curl->setopt(CURLOPT_POSTFIELDSIZE, length $body);
	$curl->setopt(CURLOPT_POSTFIELDS, $body);
	$curl->setopt(CURLOPT_HTTPHEADER, ['Content-Type: application/json']);
}
$curl->setopt(CURLOPT_WRITEDATA, \$answer);
$curl->setopt(CURLOPT_FOLLOWLOCATION, 1);
$curl->setopt(CURLOPT_ENCODING, '');
$curl->setopt(CURLOPT_TIMEOUT, $seconds);
$curl->setopt(CURLOPT_USERPWD, $user) if length $user;
my $code = $curl->perform;
print STDERR $curl->strerror($code), ': ', $curl->errbuf, "\n" if $code;
my $status = $curl->getinfo(CURLINFO_RESPONSE_CODE);
print "$answer\nsaw status=$status code=$code\n";
exit($code ? 1 : $status >= 400 ? 22 : 0);
