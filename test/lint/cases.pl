# Every case of values, logs, changes of schemas, copies, routes and shards, and the way out that users of such tools met (M, B, D, S, R, P;
# docs/testing.md) has a test that is called so: its number stands in a description. Numbers with gaps are normal.

use strict;
use warnings;

use Test::More;

my %numbers = (
	M => [ 1 .. 6, 8, 9, 11 .. 16, 18 .. 21, 23 .. 30, 32 .. 34, 36 .. 40, 42 ],
	B => [ 1 .. 4, 6 .. 11, 13 .. 17, 19 .. 24, 26 .. 38 ],
	D => [ 1 .. 8, 10 .. 15, 17 .. 22, 24 .. 34 ],
	R => [ 1 .. 5, 7, 8 ],
	S => [ 1 .. 3, 5 .. 9, 11 .. 16 ],
	P => [ 1, 2, 4 .. 13, 15 .. 25, 27 .. 31, 33, 34, 36 .. 38, 46 .. 50 ],
);

my %named;
for my $file (glob('test/t/*.pl'))
{
	open(my $in, '<', $file) or die "$file: $!";
	for my $line (<$in>)
	{
		next if $line =~ /^\s*#/;
		# in a string: 'M1: ...', "B2, B3: ...", 'M34' in a list of titles
		$named{$1} = 1 while $line =~ /(?<=['"{ ])([MBDSRP]\d+)(?=[:,'"])/g;
	}
}
for my $kind (sort keys %numbers)
{
	is_deeply([ grep { !$named{$_} } map { "$kind$_" } @{ $numbers{$kind} } ], [], "every case $kind has a test that is named after it");
}
done_testing();
