# S8: a source table changes its shape while its chunks are read, and the stream is at the change, before it, or never sees it. The copy begins
# anew by itself, however often that happens, and ends equal to the source; the table never stops, and never holds a row that was
# read by the wrong definition.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $rows = 90;
# what happens to table T, and to its rows afterwards
my @cases = (
	[ 'added', 'alter table shop.T add column more int not null default 5', 'update shop.T set more = id where id % 7 = 0' ],
	[ 'first', 'alter table shop.T add column more int not null default 5 first', 'insert into shop.T values (1, 1001, 1, null)' ],
	[ 'dropped', 'alter table shop.T drop column w', 'insert into shop.T values (1001, 1)' ],
	[ 'replaced', 'alter table shop.T drop column w, add column w int default 3', 'insert into shop.T values (1001, 1, 1)' ],
	[ 'renamed', 'alter table shop.T change column w ww varchar(20) character set latin1', q{insert into shop.T values (1001, 1, 'x')} ],
	[ 'wider', 'alter table shop.T modify column v bigint', 'update shop.T set v = 99999999999 where id % 7 = 0' ],
	[ 'other', 'alter table shop.T modify column v varchar(20)', q{update shop.T set v = 'text' where id % 7 = 0} ],
	[ 'rekeyed', 'alter table shop.T drop primary key, add primary key (v)', 'delete from shop.T where v % 7 = 0' ],
	# not in the log
	[ 'unlogged', 'alter table shop.T modify column w varchar(20) character set utf8mb4', q{update shop.T set w = 'ž' where id % 7 = 0} ],
	[ 'unseen', 'alter table shop.T add column more int not null default 5', 'update shop.T set more = id where id % 7 = 0' ],
);
my %unlogged = map { $_ => 1 } qw(unlogged unseen);
$source->sql('create database shop', map {
	my ($table) = @$_;
	("create table shop.$table (id int primary key, v int not null, w varchar(20) character set latin1)", "insert into shop.$table values " . join(', ', map { "($_, $_, convert(x'c3a9' using latin1))" } 1 .. $rows)) } @cases, [ 'calm' ]);
$source->sql('alter table shop.calm add unique index gone (v)');
$source->sql(map { "update shop.$_->[0] set w = convert(_utf8mb4 x'c3a9' using latin1)" } @cases, [ 'calm' ]);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 10, "snapshot_workers": 4, "max_rows_per_second": 150}')->setup;
$postgres->append_conf("max_worker_processes = 30\nmax_replication_slots = 30");
$postgres->append_conf('max_active_replication_origins = 30') if $postgres->major >= 18;
$postgres->restart;
# without a key there are no chunks: it changes while its one SELECT runs, or shortly before or after it
$source->sql('create table shop.bare (a int, b varchar(20))', 'insert into shop.bare values ' . join(', ', map { "($_, 'x')" } 1 .. $rows), "grant lock tables on *.* to '" . $source->user . "'\@'%'");
$pipeline->start;
$pipeline->wait_for_table_state('bare', 'snapshot');
$source->sql('alter table shop.bare add c int not null default 4', 'insert into shop.bare values (1000, null, 5)', 'alter table shop.bare modify a bigint', 'update shop.bare set c = 6 where a = 7');

# each is altered in the middle of its copy
my %left = map { $_->[0] => $_ } @cases;
my $middle = 0;
CdcBridge::Env::poll_until(sub {
	for my $table (split(/\n/, $postgres->psql(qq{select source_table from pg_stat_cdc_snapshot where rows_copied between 10 and $rows - 20 and state = 'snapshot'})))
	{
		my $case = delete $left{$table} or next;
		my $dbh = $source->connect;
		$dbh->do('set sql_log_bin = 0') if $unlogged{$table};
		$dbh->do($case->[1] =~ s/\bshop\.T\b/shop.$table/r);
		$middle++;
	}
	return !%left;
}, 60);
is($middle, scalar(@cases), 'S8: each table was altered while its chunks were read') or diag(join(' ', sort keys %left), $pipeline->describe);
$source->sql(map { my ($table, undef, $after) = @$_; $after =~ s/\bshop\.T\b/shop.$table/r } @cases);
# and once more, a little later
$source->sql('alter table shop.added add column again int default 2', 'insert into shop.added (id, v) values (2000, 1)');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup->wait_for_tables;
is($postgres->psql(q{select string_agg(concat_ws(' ', source_table, state, last_error, last_error_detail), e'\n') from pg_stat_cdc_table where state <> 'streaming'}), '', 'S8: every table streams') or diag($pipeline->describe);
$pipeline->are_same('copied anew by itself, as the source', { map { $_->[0] => "S8: $_->[1]" } @cases }, map({ $_->[0] } @cases), 'calm', 'bare');
$pipeline->is_verified('S8: cdc_verify() finds the same');
is($pipeline->status('last_error'), '', 'the pipeline is well');
unlike($postgres->log_text, qr/"shop\.calm" of pipeline "shop_in" is copied anew because/, 'a table that did not change was left alone');

# the same while a new copy is written beside the rows: readers see the old ones until the new copy takes their place
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 60}')});
$pipeline->wait_for_state('streaming');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.calm')});
ok($postgres->poll(q{select rows_copied between 10 and 80 and state = 'snapshot' from pg_stat_cdc_snapshot where source_table = 'calm'}, 't'), 'a new copy is on its way');
$source->sql('alter table shop.calm add column more int not null default 5, modify v varchar(20), drop w, add unique index come (v), drop index gone', q{insert into shop.calm values (2000, 'same u', 1)}, q{update shop.calm set v = 'text', more = 6 where id = 5});
# with a row of its own, and one for what the target was altered by to fit the copy
ok($postgres->poll(q{select count(*) > 0 from cdc_schema_history where source_table = 'calm'}), 'the statement has come');
is($postgres->psql('select count(*) from shop.calm'), $rows, 'readers see the old rows');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup->wait_for_table_state('calm', 'streaming');
$pipeline->is_same('S8: altered while it was copied anew beside its rows', 'calm');
is($postgres->psql(q{select count(*) from pg_class where relname like 'cdc\_resync%'}), '0', 'nothing is left of the copies');
ok($postgres->poll(q{select string_agg(source_index || ' ' || state, ',') from pg_stat_cdc_index where source_table = 'calm'}, 'come built'), 'its indexes are those of the source') or diag($postgres->psql('select * from pg_stat_cdc_index'));
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
