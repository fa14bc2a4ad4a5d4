# Loaded by runtests.pl (-L): what the servers and proxies noted of a request is compared without the header that
# sendonce adds, and so is what the client printed of its own request. $ENV{CURLSUITE_STRIP} is the header's name.
use strict;
use warnings;

my $read_lines = \&main::loadarray;
my $header = qr/^(?:> |=> Send header|[0-9a-f]{4}: )?\Q$ENV{CURLSUITE_STRIP}\E:/;

no warnings 'redefine';
*main::loadarray = sub {
    return grep { $_ !~ $header } $read_lines->(@_);
};
1;
