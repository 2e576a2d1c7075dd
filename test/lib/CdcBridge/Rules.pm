package CdcBridge::Rules;

# What rules of a pipeline come to: cases that hold in both directions, so that the test of either runs the same ones.
#
#   for my $example (route_examples()) { my ($rule, $table, $target) = @$example; ... }     # those of docs/routes.md, as characters
#   for my $example (transform_examples()) { my ($rule, $header, @rows) = @$example; ... }  # those of docs/transforms.md, as psql writes them

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(route_examples transform_examples);

sub route_examples
{
	open(my $in, '<:encoding(UTF-8)', 'docs/routes.md') or die "docs/routes.md: $!\n";
	return map { [ map { s/\\\|/|/gr } /^\| `(\{.*\})` \| `([^`]+)` \| `([^`]+)` \|$/ ] } grep { /^\| `\{/ } <$in>;
}

sub transform_examples
{
	open(my $in, '<', 'docs/transforms.md') or die "docs/transforms.md: $!\n";
	my $doc = do { local $/; <$in> };
	my @parts = $doc =~ /^```json\n(.*?)\n```\n```text\n(.*?)\n```/msg;
	return map { [ $parts[ 2 * $_ ], split(/\n/, $parts[ 2 * $_ + 1 ]) ] } 0 .. $#parts / 2;
}

1;
