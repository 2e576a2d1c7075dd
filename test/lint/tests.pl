# The tests themselves and the tree: numbers are unique, cells exist, nothing sleeps and hopes, nothing is left undone
# without an issue, nothing names a machine.

use strict;
use warnings;

use Test::More;

my @tests = sort glob('test/t/*.pl');
my %number;
for (@tests)
{
	my ($number) = m{/(\d{3})_[a-z0-9_]+\.pl$};
	ok(defined $number, "$_ is named NNN_topic.pl") or next;
	push @{ $number{$number} }, $_;
}
is_deeply([ map { "@$_" } grep { @$_ > 1 } values %number ], [], 'no two tests share a number');

sub text_of
{
	my ($file) = @_;
	open(my $in, '<', $file) or die "$file: $!";
	local $/;
	return <$in>;
}

for (@tests)
{
	my $text = text_of($_);
	my @cells = map { split(' ', $_) } $text =~ /^# (?:cells|also): (.*)$/mg;
	my @without_source = grep { /^pg(15|17|18)$/ } @cells;
	is_deeply([ grep { !/^((mariadb|mysql)-(15|18)|mariadb118-15)$/ } @cells ], [], "$_ names cells that exist") unless @cells && @without_source == @cells;
}

# "select(undef, undef, undef, ...)" is allowed in the one place that polls with a deadline, and where writers come back
my @perl = (@tests, glob('test/lib/CdcBridge/*.pm'), grep { text_of($_) =~ /^#!.*perl/ } grep { -f } glob('test/* test/tools/* test/demo/* test/bench/*'));
for my $file (@perl)
{
	my @sleeps = grep { /(?<![\w-])(?:sleep|usleep|pg_sleep)\s*\(?\s*[\d\$]/ && !/^\s*#/ } split(/\n/, text_of($file));
	is_deeply(\@sleeps, [], "$file polls and does not sleep");
}
for my $file (glob('test/sql/*.sql'))
{
	unlike(text_of($file), qr/pg_sleep/, "$file does not sleep");
}

my @sources = map { glob($_) } qw(src/*/*.[ch] src/*/*/*.[ch] sql/*.sql test/unit/*.[ch] test/fuzz/*.[ch]);
my @undone = grep { text_of($_) =~ m{\b(?:TODO|FIXME|XXX)\b(?!.*issue \d)} } @sources;
is_deeply(\@undone, [], 'nothing is left undone without the number of its issue');

is(readlink('test/expected') // '', '../expected', 'test/expected leads to the outputs of pg_regress');
my @sql = map { m{([^/]+)\.sql$} } glob('test/sql/*.sql');
is_deeply([ grep { !-e "expected/$_.out" } @sql ], [], 'every pg_regress test has an output');

done_testing();
