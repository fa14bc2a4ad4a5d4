# One write by WWW::Curl::Multi. Arguments: URL, seconds, user:password or nothing, body.
use strict;
use warnings;
use WWW::Curl::Easy;
use WWW::Curl::Multi;

my ($url, $seconds, $user, $body) = @ARGV;
my ($answer, $at, $code) = ('', 0, undef);
my $curl = WWW::Curl::Easy->new;
$curl->setopt(CURLOPT_URL, $url);
$curl->setopt(CURLOPT_UPLOAD, 1);
$curl->setopt(CURLOPT_INFILESIZE, length $body);
$curl->setopt(CURLOPT_READFUNCTION, sub { my $part = substr($body, $at, $_[0]); $at += length $part; $part });
$curl->setopt(CURLOPT_WRITEFUNCTION, sub { $answer .= $_[0]; length $_[0] });
$curl->setopt(CURLOPT_HTTPHEADER, ['Content-Type: application/json']);
$curl->setopt(CURLOPT_TIMEOUT, $seconds);
$curl->setopt(CURLOPT_USERPWD, $user) if length $user;
$curl->setopt(CURLOPT_PRIVATE, 7);
my $multi = WWW::Curl::Multi->new;
$multi->add_handle($curl);
while (!defined $code) {
	$multi->perform;
	while (my ($id, $result) = $multi->info_read) {
		$code = $result if $id == 7;
	}
	last if defined $code;
	my ($read, $write) = $multi->fdset;
	my ($r, $w) = ('', '');
	vec($r, $_, 1) = 1 for @$read;
	vec($w, $_, 1) = 1 for @$write;
	select($r, $w, undef, 0.05);
}
print STDERR $curl->strerror($code), ': ', $curl->errbuf, "\n" if $code;
my $status = $curl->getinfo(CURLINFO_RESPONSE_CODE);
print "$answer\nsaw status=$status code=$code\n";
exit($code ? 1 : $status >= 400 ? 22 : 0);
