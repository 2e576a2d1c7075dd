# Targets of other kinds than mirrors under a copy, a stream and kill -9: rows without a mark are the source's, a history leads from its copied
# rows to the source's, a row with a version is the source's; a new copy beside the rows at the end.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until random_seed);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $seed = random_seed();
my $source = CdcBridge::Source->new(args => ['--innodb-lock-wait-timeout=2']);
$source->{seed} = $seed;
my $postgres = CdcBridge::Postgres->new;
my $rows = 1500;
my @tables = qw(soft log last);

$source->sql('create database shop', sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user));
for my $table (@tables)
{
	$source->sql("create table shop.$table (id int primary key, v varchar(20), ver bigint not null)",
		"insert into shop.$table values " . join(', ', map { "($_, 'v$_', 0)" } 0 .. $rows - 1));
}

# Each writer has rows of its own, some of them hot. Versions only grow, also over a delete.
my $version;
sub change
{
	my ($dbh, $number) = @_;
	my $table = $tables[ rand @tables ];
	$dbh->begin_work;
	for (1 .. 1 + int(rand(4)))
	{
		my $id = (rand() < 0.5 ? int(rand(10)) : int(rand($rows / 3))) * 3 + $number - 1;
		my $what = int(rand(6));
		$version = int(time() * 1e6);
		if ($what < 2) { $dbh->do("update shop.$table set v = 'u$version', ver = $version where id = $id"); }
		elsif ($what == 2) { $dbh->do("delete from shop.$table where id = $id"); }
		elsif ($what == 3) { $dbh->do("replace into shop.$table values ($id, 'r$version', $version)"); }
		elsif ($what == 4) { $dbh->do("insert ignore into shop.$table values ($id, 'i$version', $version)"); }
		else { $dbh->do("update ignore shop.$table set id = " . (int(rand($rows / 3)) * 3 + $number - 1) . ", ver = $version where id = $id"); }
	}
	rand() < 0.1 ? $dbh->rollback : $dbh->commit;
	return;
}

my $alive = q{select id, v, ver from shop.soft where not cdc_deleted};
my $order = q{split_part(split_part(cdc_position, ':', 1), '.', 2)::int desc nulls last, split_part(cdc_position, ':', 2)::bigint desc nulls last, cdc_sequence desc nulls last, cdc_operation desc};
my $folded = qq{select id, v, ver from (select distinct on (id) * from shop.log order by id, $order) l where cdc_operation <> 'delete'};
my %here = (soft => $alive, log => $folded, last => 'select id, v, ver from shop.last');
sub is_right
{
	my ($pipeline, $when) = @_;
	$pipeline->wait_for_catchup;
	for my $table (@tables)
	{
		my $there = join("\n", map { join('|', @$_) } $source->query_rows("select id, v, ver from shop.$table order by id"));
		my $here = $postgres->psql("$here{$table} order by id");
		ok($here eq $there, "$when: $table has " . (() = $there =~ /$/mg) . ' rows, those of the source') or do
		{
			my %here = map { ($_ => 1) } split(/\n/, $here);
			my %there = map { ($_ => 1) } split(/\n/, $there);
			diag('only here: ' . join(', ', (grep { !$there{$_} } sort keys %here)[ 0 .. 9 ]), "\nonly there: " . join(', ', (grep { !$here{$_} } sort keys %there)[ 0 .. 9 ]), "\n", $pipeline->describe);
		};
	}
	is($postgres->psql('select count(*) from shop.soft where cdc_deleted = (cdc_deleted_at is null)'), '0', "$when: marks and times go together");
	is($postgres->psql(q{select count(*) from (select from shop.log where cdc_operation <> 'copy' group by cdc_position, cdc_sequence, cdc_operation having count(*) > 1) x}), '0', "$when: no change is there twice");
	# each transaction changes one table, so its rows are numbered without a gap
	is($postgres->psql(q{select count(*) from (select from shop.log where cdc_operation <> 'copy' group by cdc_position having max(cdc_sequence) <> count(distinct cdc_sequence)) x}), '0', "$when: and none is missing");
	$pipeline->is_verified("$when: cdc_verify() says so too", qw(soft last));
	return;
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop',
	options => sprintf('{"snapshot_chunk_rows": 40, "batch_max_ms": %d, "max_rows_per_second": 2500, "transforms": [{"tables": "shop.soft", "target": "soft_delete"}, {"tables": "shop.log", "target": "append"}, {"tables": "shop.last", "target": "last_writer", "version_column": "ver"}]}', int(rand(100))));
$pipeline->setup;
$source->start_writers(3, \&change);
$pipeline->start;
sub kill_some
{
	for (1 .. 3)
	{
		my ($pid) = split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type like 'cdc_bridge % worker' and backend_type !~ 'maint' order by random() limit 1}));
		$postgres->kill9_process($pid) if $pid;
	}
	return;
}
$postgres->poll(q{select count(*) > 0 and count(*) filter (where state = 'done') > 0 from cdc_bridge.snapshot_chunk}, 't', 10);
kill_some();
$pipeline->wait_for_tables;
$source->stop_writers;
is_right($pipeline, 'the copy');

$source->start_writers(3, \&change);
my ($file, $offset) = $source->binlog_position;
poll_until(sub { my ($f, $o) = $source->binlog_position; return $f ne $file || $o > $offset + 100_000; }) or die "nobody writes\n";
kill_some();
$source->stop_writers;
is_right($pipeline, 'the stream');
my $marked = $postgres->psql('select count(*) from shop.soft where cdc_deleted');
cmp_ok($marked, '>', 0, "$marked rows have a mark");

$source->start_writers(3, \&change);
my $table_file = $postgres->psql(q{select pg_relation_filenode('shop.soft')});
$postgres->psql(q{create table was as select id from shop.soft; select cdc_resync_table('shop_in', 'shop.soft')});
ok($postgres->poll("select pg_relation_filenode('shop.soft') <> $table_file", 't'), 'a new copy is in place');
$source->stop_writers;
is_right($pipeline, 'the new copy');
is($postgres->psql('select count(*) from was where id not in (select id from shop.soft)'), '0', 'no row is lost by it');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
