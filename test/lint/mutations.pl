# The table of mutations does not rot: what each of them replaces stands in the sources, once, and its tests are there.

use strict;
use warnings;

use lib 'test/lib';
use CdcBridge::Mutations;
use Test::More;

my @mutations = CdcBridge::Mutations::read_table('.');
cmp_ok(scalar(@mutations), '>', 0, 'there are mutations');
my %seen;
for my $mutation (@mutations)
{
	is(CdcBridge::Mutations::problem('.', $mutation), '', "mutation $mutation->{name} still applies");
	ok(!$seen{ $mutation->{name} }++, "there is one $mutation->{name}");
}

done_testing();
