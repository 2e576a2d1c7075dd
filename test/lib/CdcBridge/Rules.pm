package CdcBridge::Rules;

# What rules of a pipeline come to: cases that hold in both directions, so that the test of either runs the same ones.
#
#   for my $example (route_examples()) { my ($rule, $table, $target) = @$example; ... }     # those of docs/routes.md, as characters

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(route_examples);

sub route_examples
{
	open(my $in, '<:encoding(UTF-8)', 'docs/routes.md') or die "docs/routes.md: $!\n";
	return map { [ map { s/\\\|/|/gr } /^\| `(\{.*\})` \| `([^`]+)` \| `([^`]+)` \|$/ ] } grep { /^\| `\{/ } <$in>;
}

1;
