# The ladder of src/README.md: a file includes only from its own folder and from lower rungs; what is below the PostgreSQL
# line never includes a server header; a client library's header is included by one folder only; PG_VERSION_NUM is for
# compat alone.

use strict;
use warnings;

use Test::More;

my @rungs = (
	[qw(core)],
	[qw(binlog ddl format columnar ticdc)],
	[qw(compat)],    # the design draws util and compat side by side; util needs the version ifs like everyone above it
	[qw(util)],
	[qw(catalog mysql kafka http flink)],
	[qw(schema)],    # rung 4 of the picture, in the order written there
	[qw(transform)],
	[qw(heap)],
	[qw(chunk)],
	[qw(source snapshot apply decode sink verify fdw)],
	[qw(pipeline)],
	[qw(api)],
);
my %rung;
for my $number (0 .. $#rungs) { $rung{$_} = $number for @{ $rungs[$number] }; }
my $first_with_postgres = $rung{compat};

# header => the only folder that may include it
my %owner = ('mysql.h' => 'mysql', 'mysqld_error.h' => 'mysql', 'errmsg.h' => 'mysql', 'rdkafka.h' => 'kafka', 'librdkafka/rdkafka.h' => 'kafka',
	'curl/curl.h' => 'http', 'jansson.h' => 'http', 'yaml.h' => 'flink');
# folder/file of each source, sub-folders (sink/iceberg) included
my @files = sort grep { /\.[ch]$/ } map { glob("src/$_") } ('*/*', '*/*/*');
ok(@files, 'there are sources');

my (%in_tree) = map { (s{^src/}{}r => 1) } @files;
for my $file (@files)
{
	my ($folder) = $file =~ m{^src/([^/]+)/};
	my @wrong;
	if (!defined $rung{$folder})
	{
		fail("$file: folder $folder stands on no rung");
		next;
	}
	open(my $in, '<', $file) or die "$file: $!";
	while (<$in>)
	{
		push @wrong, "line $.: PG_VERSION_NUM outside compat/" if /\bPG_VERSION_NUM\b/ && $folder ne 'compat' && !m{^\s*(/?\*|//)};
		my ($mark, $header) = /^\s*#\s*include\s*([<"])([^>"]+)[>"]/ or next;
		my $where = "line $.: includes $header";
		my ($target) = $header =~ m{^([^/]+)/};
		next if $mark eq '"' && $in_tree{"$folder/$header"};
		if ($mark eq '"' && defined $target && defined $rung{$target} && $in_tree{$header})
		{
			push @wrong, "$where from a higher rung" if $rung{$target} > $rung{$folder};
			push @wrong, "$where from a sibling" if $rung{$target} == $rung{$folder} && $target ne $folder;
		}
		elsif (defined $owner{$header})
		{
			push @wrong, "$where, which is for $owner{$header}/ alone" if $owner{$header} ne $folder;
		}
		elsif ($mark eq '"' && $rung{$folder} < $first_with_postgres)
		{
			push @wrong, "$where, which is not ours, below the PostgreSQL line";
		}
	}
	ok(!@wrong, $file) or diag(map { "$file: $_\n" } @wrong);
}

done_testing();
