# The README's SQL, pasted statement by statement, works: first the block for the kind of source that this is (it makes the user),
# then the blocks for PostgreSQL. Only host and port are replaced by those of the servers here. postgresql.conf comes from
# the README too.

use strict;
use warnings;

use CdcBridge::Env qw(slurp tree);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(create_shop fill_shop);
use CdcBridge::Source;
use Test::More;

my $readme = tree() . '/README.md';
plan skip_all => 'there is no README yet' unless -e $readme;
my $text = slurp($readme);

my %block;
while ($text =~ /^```(\w+)[^\n]*\n(.*?)^```/msg) { push @{ $block{$1} }, $2; }
ok($block{sql}, 'the README has SQL to paste') or do { done_testing(); exit; };

my $source = CdcBridge::Source->new;
my $conf = join('', map { grep_conf($_) } @{ $block{ini} // [] }, @{ $block{conf} // [] });
my $postgres = CdcBridge::Postgres->new(conf => $conf);
like($conf, qr/shared_preload_libraries/, 'the README tells the line for postgresql.conf');
create_shop($source);
fill_shop($source, 300);

sub grep_conf { return join('', map { "$_\n" } grep { /^\w[\w.]* *=/ } split(/\n/, $_[0])); }

# Statements of a block, without comments.
sub statements
{
	my ($sql) = @_;
	$sql =~ s/--[^\n]*//g;
	return grep { /\S/ } map { s/^\s+|\s+$//gr } split(/;[ \t]*(?:\n|\z)/, $sql);
}

# a block that makes the source's user is for MySQL when it sets a variable by SET PERSIST, which MariaDB lacks
my @source_blocks = grep { /create user (?!mapping)/i && (/set persist/i xor $source->is_mariadb) } @{ $block{sql} };
my @blocks = grep { !/create user (?!mapping)/i } @{ $block{sql} };
is(scalar @source_blocks, 1, 'the README says what to run on such a source');
$source->sql("drop user 'repl'\@'%'");
for my $statement (map { statements($_) } @source_blocks)
{
	ok(eval { $source->sql($statement); 1 }, "source: $statement") or diag($@);
}

for my $statement (map { statements($_) } @blocks)
{
	my $port = $source->port;
	(my $here = $statement) =~ s/host '[^']*', port '\d+'/host '127.0.0.1', port '$port'/;
	my ($status, $out, $err) = $postgres->try_psql("$here;\n");
	is($status, 0, "pasted: $statement") or diag($err);
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => $postgres->psql('select min(pipeline) from pg_stat_cdc_pipeline'));
if ($pipeline->state eq 'streaming')
{
	$pipeline->wait_for_tables->wait_for_catchup;
	$pipeline->is_same('what the README says is mirrored is mirrored');
}

done_testing();
