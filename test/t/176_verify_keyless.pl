# cdc_verify() of tables without a key: multisets of rows, compared under writers; too many and too few of equal rows are found, and nothing else.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.flat (a int, b varchar(30), d datetime(3)) default charset utf8mb4', 'create table shop.note (a int, b varchar(30), f double, j json) default charset utf8mb4',
	'create table shop.part (a int not null, b varchar(30)) default charset utf8mb4');
# 250 distinct rows, four of each
for my $part (0 .. 3)
{
	my @n = map { $_ % 250 } 1 .. 250;
	$source->sql('insert into shop.flat values ' . join(', ', map { "($_, 'row $_', '2024-01-01 00:00:00.5')" } @n), 'insert into shop.note values ' . join(', ', map { "($_, 'row $_', $_ / 7, '{\"n\": $_}')" } @n),
		'insert into shop.part values ' . join(', ', map { "($_, 'row $_')" } @n));
}
$source->sql("insert into shop.flat values (null, '', null), (null, null, null)", "insert into shop.note values (null, '', null, null), (null, null, 0, 'null')");
$source->sql(sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user)) if $source->is_mysql;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
$pipeline->start->wait_for_state('streaming')->wait_for_tables(60);

sub verified
{
	my ($columns, $table) = @_;
	return $postgres->psql("select $columns from pg_stat_cdc_verify where request = $pipeline->{verify_request} and source_table = '$table'");
}

$pipeline->is_verified('nothing moves: nothing is found');
is(verified(q{concat_ws(' ', method, rows_source, rows_target, chunks_by_sum, rows_read)}, 'flat'), 'multiset 1002 1002 1 0', 'all columns print alike: by a sum');
is(verified(q{concat_ws(' ', method, rows_source, rows_target, chunks_by_sum, rows_read)}, 'note'), 'multiset 1002 1002 0 1002', 'a float and JSON: the rows are read');
is(verified(q{concat_ws(' ', method, rows_target, rows_read)}, 'part'), 'multiset 1000 0', 'and another one');
is($pipeline->verify_mode('sample', 'flat'), '', 'there is nothing to choose a sample from');
is(verified('method', 'flat'), 'count', 'it is counted');

# rows from 200 on are left alone; a few come and go, with the same values again and again
my $seed = $ENV{CDC_SEED} // time();
note("seed $seed");
$source->{seed} = $seed;
sub write_on
{
	$source->start_writers(3, sub {
		my ($dbh) = @_;
		my $n = int(rand(8));
		my ($table, $more) = @{ ([ 'flat', "'2024-01-01 00:00:00.5'" ], [ 'note', "$n / 7, '{\"n\": $n}'" ])[ rand 2 ] };
		my $dice = rand();
		$dbh->do($dice < 0.4 ? "insert into shop.$table values ($n, 'row $n', $more)" : $dice < 0.7 ? "delete from shop.$table where a = $n limit 1" : "update shop.$table set b = concat(b, 'x') where a = $n limit 1");
	});
}
write_on();
for my $round (1 .. 3)
{
	is($pipeline->verify('flat', 'note', 'part') =~ s/^\w+: 0 missing, 0 extra, 0 different, \d+ unsettled, done\n//mgr, '', "under writers nothing is found, round $round");
}

# ctid: exactly one of equal rows
my $one = sub { my ($table, $where) = @_; return "ctid in (select ctid from shop.$table where $where limit 1)"; };
$postgres->psql(join(';', 'delete from shop.flat where ' . $one->('flat', 'a = 200'), q{insert into shop.flat select a, b, d from shop.flat where a = 210 limit 2}, "update shop.flat set b = null where b = ''",
	"update shop.flat set d = d + '1 ms' where " . $one->('flat', 'a = 220'),
	'update shop.note set f = f + 1e-9 where ' . $one->('note', 'a = 200'), q{update shop.note set j = j || '{"m": null}' where } . $one->('note', 'a = 210'), q{update shop.note set f = '-0' where f = 0 and a is null},
	'delete from shop.part where a = 150'));
my $found = $pipeline->verify('flat', 'note', 'part');
my @counts = grep { / missing, / } split(/\n/, $found);
like($counts[0], qr/^flat: 3 missing, 4 extra, 0 different, \d+ unsettled, done$/, 'rows that are there too seldom and too often');
like($counts[1], qr/^note: 3 missing, 3 extra, 0 different, \d+ unsettled, done$/, 'a digit of a float, its sign, a key of jsonb');
is($counts[2], 'part: 4 missing, 0 extra, 0 different, 0 unsettled, done', 'all rows of a kind');
is(scalar(@counts), 3, 'in no other table');
is($postgres->psql("select string_agg(kind || ' ' || rows, ', ' order by kind, rows) from cdc_verify_differences($pipeline->{verify_request}) where source_table = 'flat'"),
	'extra 1, extra 1, extra 2, missing 1, missing 1, missing 1', 'one line for each distinct row, with how many there are');
is($postgres->psql("select string_agg(kind || ' ' || rows, ', ' order by kind, rows) from cdc_verify_differences($pipeline->{verify_request}) where source_table = 'part'"), 'missing 4', 'also for equal ones');
my $ctid = $postgres->psql("select key[2] from cdc_verify_differences($pipeline->{verify_request}) where source_table = 'flat' and kind = 'extra' and rows = 2");
is($postgres->psql("select a from shop.flat where ctid = '$ctid'"), 210, 'a row that is too often is named by its place');
$source->stop_writers;

# a comparison that is given up in the middle of reading leaves a worker that goes on with the next one
$source->sql(map { 'insert into shop.note select a, b, f, j from shop.note' } 1 .. 6);
$pipeline->wait_for_catchup(120);
my $request = $postgres->psql(q{select cdc_verify('shop_in', '{shop.note}')});
$postgres->poll("select rows_read > 0 or state = 'done' from pg_stat_cdc_verify where request = $request", 't') or diag($pipeline->describe);
$postgres->psql("select cdc_cancel_verify($request)");
like($pipeline->verify('note', 'flat'), qr/^flat: 3 missing, 4 extra, 0 different, 0 unsettled, done$/m, 'the next one finds the same when nothing moves');
is($pipeline->verify_mode('count', 'part'), "part: 4 missing, 0 extra, 0 different, 0 unsettled, done\n", 'and counting, as much as it can');

done_testing();
